import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import type { BlobStore, Parts } from '../../src/blobs/blob-store.ts'

/** One blob of a store, with what the database would remember of it. */
export type TestBlob = {
  readonly parts: Parts
  /** Stores these texts, or buffers, from `offset` on; an Error is thrown in their place. */
  write: (offset: number, ...pieces: Piece[]) => Promise<{ writtenBytes: number; failure: unknown }>
  hash: (sizeBytes: number) => Promise<string | undefined>
  finish: (sizeBytes: number) => Promise<void>
  /** Text of a finished blob, whole or bytes `start` to `end`; undefined when there is none. */
  read: (range?: { start: number; end: number }) => Promise<string | undefined>
  discard: () => Promise<void>
}

type Piece = string | Buffer | Error

export function openTestBlob(blobs: BlobStore, key: string): TestBlob {
  let parts: Parts = []
  const hash = async (sizeBytes: number) => await blobs.hash(key, { sizeBytes, parts })
  return {
    get parts() {
      return parts
    },
    async write(offset, ...pieces) {
      const written = await blobs.write(key, { offset, parts, source: yieldPieces(pieces) })
      parts = written.parts
      return { writtenBytes: written.writtenBytes, failure: written.failure }
    },
    hash,
    finish: async (sizeBytes) =>
      await blobs.finish(key, { sizeBytes, sha256: (await hash(sizeBytes)) ?? sha256(''), parts }),
    async read(range) {
      const found = await blobs.find(key)
      if (found === undefined) return undefined
      if (found.sizeBytes === 0) return ''
      return String(await buffer(await found.read(range ?? { start: 0, end: found.sizeBytes - 1 })))
    },
    discard: async () => await blobs.discard(key, parts),
  }
}

export async function* yieldPieces(pieces: Piece[]): AsyncGenerator<Buffer> {
  for (const piece of pieces) {
    if (piece instanceof Error) throw piece
    yield Buffer.from(piece)
  }
}

export function sha256(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
