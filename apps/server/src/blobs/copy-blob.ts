import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { type BlobStore, BlobsUnavailableError, type StoredBlob } from './blob-store.ts'

export type FinishedBlob = { key: string; sizeBytes: number; sha256: string }

/** The store answers, and does not have the bytes that it should: a matter of this blob alone. */
export class DamagedBlobError extends Error {}

/** Blobs that are copied at a time: enough to hide the way to a bucket. */
const concurrency = 4

/** False when it was there already. What arrives with another hash is not kept. */
export async function copyBlob(from: BlobStore, to: BlobStore, blob: FinishedBlob): Promise<boolean> {
  const { key, sizeBytes, sha256 } = blob
  if ((await to.find(key))?.sizeBytes === sizeBytes) return false
  const stored = await from.find(key)
  if (stored?.sizeBytes !== sizeBytes) {
    throw new DamagedBlobError(`blob ${key} has ${stored?.sizeBytes ?? 'no'} bytes instead of ${sizeBytes}`)
  }
  const hash = createHash('sha256')
  const source = readWhole(stored, (bytes) => hash.update(bytes))
  const { parts, failure } = await to.write(key, { offset: 0, parts: [], source })
  if (failure instanceof BlobsUnavailableError) throw failure
  if (failure !== undefined) throw new DamagedBlobError(`blob ${key} cannot be read`, { cause: failure })
  if (hash.digest('hex') !== sha256) {
    await to.discard(key, parts)
    throw new DamagedBlobError(`blob ${key} has changed: its SHA-256 is not ${sha256}`)
  }
  await to.finish(key, { sizeBytes, sha256, parts })
  return true
}

/** Stops at the first that fails. */
export async function forEachBlob<Blob extends FinishedBlob>(
  blobs: AsyncIterable<Blob>,
  use: (blob: Blob) => Promise<void>,
): Promise<void> {
  await Readable.from(blobs).forEach(use, { concurrency })
}

async function* readWhole({ sizeBytes, read }: StoredBlob, look: (bytes: Buffer) => void) {
  if (sizeBytes === 0) return
  for await (const bytes of await read({ start: 0, end: sizeBytes - 1 })) {
    look(bytes)
    yield bytes as Buffer
  }
}
