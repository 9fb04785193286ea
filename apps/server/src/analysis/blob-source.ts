import { buffer } from 'node:stream/consumers'
import type { ByteSource } from '../analyzer/archive.ts'
import type { BlobStore } from '../blobs/blob-store.ts'

/** A stored archive, read in pieces. */
export async function openBlobSource(blobs: BlobStore, key: string): Promise<ByteSource | undefined> {
  const blob = await blobs.find(key)
  if (blob === undefined) return undefined
  return {
    sizeBytes: blob.sizeBytes,
    read: async (offset, length) => {
      if (length === 0) return Buffer.alloc(0)
      const bytes = await buffer(await blob.read({ start: offset, end: offset + length - 1 }))
      if (bytes.length !== length) throw new Error(`blob ${key}: ${bytes.length} of ${length} bytes at ${offset}`)
      return bytes
    },
  }
}
