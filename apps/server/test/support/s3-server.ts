import { inject } from 'vitest'
import { type BlobsLocation, parseBlobsLocation } from '../../src/blobs/blobs-location.ts'
import { runS3Server, type S3Server } from './run-s3-server.ts'

export type { S3Server }

/** undefined when S3 can be tested here. */
export const noS3Server: string | undefined = readMissing()

function readMissing(): string | undefined {
  const build = inject('s3Server')
  return 'missing' in build ? build.missing : undefined
}

export async function startS3Server(): Promise<S3Server> {
  const build = inject('s3Server')
  if ('missing' in build) throw new Error(build.missing)
  return await runS3Server(build.program)
}

export function toLocation(setting: string): BlobsLocation & { kind: 's3' } {
  const parsed = parseBlobsLocation(setting, '')
  if (parsed.kind !== 's3') throw new Error(`${setting} is not in a bucket`)
  return parsed
}
