import { buffer } from 'node:stream/consumers'
import type { ByteSource } from '../analyzer/archive.ts'
import type { BlobStore } from '../blobs/blob-store.ts'

/** A stored archive, read in pieces. */
export function createBlobSource(blobs: BlobStore, input: { key: string; sizeBytes: number }): ByteSource {
  return {
    sizeBytes: input.sizeBytes,
    read: async (offset, length) => {
      if (length === 0) return Buffer.alloc(0)
      const bytes = await buffer(blobs.read(input.key, { start: offset, end: offset + length - 1 }))
      if (bytes.length !== length) throw new Error(`blob ${input.key}: ${bytes.length} of ${length} bytes at ${offset}`)
      return bytes
    },
  }
}
