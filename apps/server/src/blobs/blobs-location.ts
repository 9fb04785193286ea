import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseS3Location, type S3Location } from './s3/location.ts'

export type BlobsLocation = { kind: 'disk'; dir: string } | { kind: 's3'; location: S3Location }

/** Reads `disk`, `file:/path` or `s3://…`. Throws an Error that says what is wrong with it. */
export function parseBlobsLocation(text: string, dataDir: string): BlobsLocation {
  if (text === 'disk') return { kind: 'disk', dir: resolve(dataDir, 'blobs') }
  if (/^s3:/i.test(text)) return { kind: 's3', location: parseS3Location(text) }
  try {
    return { kind: 'disk', dir: fileURLToPath(text) }
  } catch {
    throw new Error('must be disk, file:/absolute/path, or s3://bucket/prefix?…')
  }
}
