import { randomBytes } from 'node:crypto'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { insertBlob } from './queries.ts'

/** How long the bytes of a registered artifact may take to arrive. */
const uploadLifetimeMs = 24 * 60 * 60 * 1000

/** Makes room for the bytes of an artifact, as part of the transaction that registers it. */
export async function registerUpload(
  deps: Deps,
  db: Db,
  input: { sizeBytes: number },
): Promise<{ blobKey: string; url: string }> {
  if (input.sizeBytes > deps.config.maxArtifactBytes) {
    throw new AppError('payload_too_large', `size: the largest artifact has ${deps.config.maxArtifactBytes} bytes`)
  }
  const blobKey = randomBytes(16).toString('hex')
  const expiresAt = new Date(deps.clock().getTime() + uploadLifetimeMs)
  await insertBlob(db, { key: blobKey, sizeBytes: input.sizeBytes, expiresAt })
  return { blobKey, url: deps.urls.sign('upload', blobKey, expiresAt) }
}
