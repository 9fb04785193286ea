import { Readable } from 'node:stream'
import { createInflateRaw } from 'node:zlib'
import { type BlockCache, blockBytes, maxReadBytes } from './block-cache.ts'

/** A part of the source from front to back: the first piece is one block, because often no other is needed. */
export async function* readPieces(cache: BlockCache, start: number, length: number): AsyncGenerator<Buffer> {
  const end = start + length
  let stepBytes = blockBytes
  for (let at = start; at < end; ) {
    const next = Math.min(end, (Math.floor(at / stepBytes) + 1) * stepBytes)
    yield await cache.read(at, next - at)
    at = next
    stepBytes = maxReadBytes
  }
}

/** What was compressed with Deflate, for as long as it is asked for. */
export async function* inflate(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const input = Readable.from(pieces)
  const output = createInflateRaw({ chunkSize: 65_536 })
  input.once('error', (error) => output.destroy(error))
  input.pipe(output)
  try {
    yield* output
  } finally {
    input.destroy()
    output.destroy()
  }
}
