import type { ByteReader } from '../byte-reader.ts'
import { malformed } from './refusals.ts'

/** The unit of binary XML and of resource tables. */
export type Chunk = { type: number; start: number; headerEnd: number; end: number }

export const chunkTypes = {
  stringPool: 0x0001,
  table: 0x0002,
  xml: 0x0003,
  startElement: 0x0102,
  endElement: 0x0103,
  resourceMap: 0x0180,
  package: 0x0200,
  type: 0x0201,
} as const

const headerBytes = 8

export function readChunk(bytes: ByteReader, start: number, limit: number): Chunk {
  const headerEnd = start + bytes.uint16(start + 2)
  const end = start + bytes.uint32(start + 4)
  if (headerEnd < start + headerBytes || headerEnd > end || end > limit)
    throw malformed('a chunk has an impossible size')
  return { type: bytes.uint16(start), start, headerEnd, end }
}

/** What lies in `start` to `end`, one chunk behind another. What is too short for a chunk is padding. */
export function* readChunks(bytes: ByteReader, start: number, end: number): Generator<Chunk> {
  for (let at = start; at + headerBytes <= end; ) {
    const chunk = readChunk(bytes, at, end)
    yield chunk
    at = chunk.end
  }
}
