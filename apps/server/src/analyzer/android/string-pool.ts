import type { ByteReader } from '../byte-reader.ts'
import type { Chunk } from './chunks.ts'
import { beyondLimit, malformed } from './refusals.ts'

/** Gives the text at an index; undefined when there is none. */
export type StringPool = (index: number) => string | undefined

export const emptyPool: StringPool = () => undefined

const utf8Flag = 0x100
/** Of all texts together: places of a pool may share their bytes, so the size of the file is no limit. */
const maxDecodedBytes = 16 * 1024 ** 2

/** Nothing is decoded before it is asked for. */
export function readStringPool(bytes: ByteReader, chunk: Chunk): StringPool {
  const count = bytes.uint32(chunk.start + 8)
  const isUtf8 = (bytes.uint32(chunk.start + 16) & utf8Flag) !== 0
  const stringsStart = chunk.start + bytes.uint32(chunk.start + 20)
  const known = new Map<number, string>()
  let decodedBytes = 0
  return (index) => {
    if (index >= count || index < 0) return undefined
    const before = known.get(index)
    if (before !== undefined) return before
    const place = chunk.headerEnd + index * 4
    if (place + 4 > chunk.end) throw malformed('a string is not in its pool')
    const encoded = sliceString(bytes, { at: stringsStart + bytes.uint32(place), end: chunk.end, isUtf8 })
    decodedBytes += encoded.length
    if (decodedBytes > maxDecodedBytes) throw beyondLimit('too much text in a string pool')
    const text = isUtf8 ? decodeUtf8(encoded) : encoded.toString('utf16le')
    known.set(index, text)
    return text
  }
}

function sliceString(bytes: ByteReader, place: { at: number; end: number; isUtf8: boolean }): Buffer {
  const { at, end, isUtf8 } = place
  const [lengthBytes, size] = isUtf8 ? measureUtf8(bytes, at) : measureUtf16(bytes, at)
  const start = at + lengthBytes
  if (start + size > end) throw malformed('a string is longer than its pool')
  return bytes.slice(start, size)
}

/** Behind the count of characters there is that of bytes. Each has a second byte when it does not fit into seven bits. */
function measureUtf8(bytes: ByteReader, at: number): [lengthBytes: number, size: number] {
  const first = (bytes.uint8(at) & 0x80) === 0 ? 1 : 2
  const size = bytes.uint8(at + first)
  if ((size & 0x80) === 0) return [first + 1, size]
  return [first + 2, ((size & 0x7f) << 8) | bytes.uint8(at + first + 1)]
}

function measureUtf16(bytes: ByteReader, at: number): [lengthBytes: number, size: number] {
  const units = bytes.uint16(at)
  if ((units & 0x8000) === 0) return [2, units * 2]
  return [4, ((units & 0x7fff) * 0x10000 + bytes.uint16(at + 2)) * 2]
}

/** aapt2 writes a character beyond U+FFFF, such as an emoji, as two surrogates of three bytes each. */
function decodeUtf8(encoded: Buffer): string {
  if (!encoded.includes(0xed)) return encoded.toString('utf8')
  const fixed = Buffer.allocUnsafe(encoded.length)
  let length = 0
  for (let at = 0; at < encoded.length; ) {
    const high = readSurrogate(encoded, at, 0xa0)
    const low = high === undefined ? undefined : readSurrogate(encoded, at + 3, 0xb0)
    if (high === undefined || low === undefined) {
      fixed[length] = encoded[at] ?? 0
      length += 1
      at += 1
      continue
    }
    length += fixed.write(String.fromCodePoint(0x10000 + high * 0x400 + low), length, 'utf8')
    at += 6
  }
  return fixed.toString('utf8', 0, length)
}

/** The ten bits of it; undefined when there is no surrogate of this half. */
function readSurrogate(encoded: Buffer, at: number, half: number): number | undefined {
  const [first, second, third] = encoded.subarray(at, at + 3)
  if (first !== 0xed || second === undefined || third === undefined) return undefined
  if ((second & 0xf0) !== half || (third & 0xc0) !== 0x80) return undefined
  return ((second & 0x0f) << 6) | (third & 0x3f)
}
