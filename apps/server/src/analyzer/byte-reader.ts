import { UnanalyzableError } from './app-facts.ts'

export type Endianness = 'big' | 'little'

/** Numbers out of bytes that come from outside: whatever lies beyond their end is malformed content, and never a fault. */
export type ByteReader = {
  sizeBytes: number
  uint8: (at: number) => number
  uint16: (at: number) => number
  uint32: (at: number) => number
  /** Not exact beyond 2^53, which no place in a file is. */
  uint64: (at: number) => number
  /** The same bytes, not a copy. */
  slice: (at: number, length: number) => Buffer
}

export function createByteReader(bytes: Buffer, endianness: Endianness): ByteReader {
  const isLittle = endianness === 'little'
  const check = (at: number, length: number): number => {
    if (!(at >= 0 && length >= 0 && at + length <= bytes.length)) {
      throw new UnanalyzableError('malformed_content', 'the file ends too early')
    }
    return at
  }
  const uint32 = (at: number) => (isLittle ? bytes.readUInt32LE(check(at, 4)) : bytes.readUInt32BE(check(at, 4)))
  return {
    sizeBytes: bytes.length,
    uint8: (at) => bytes.readUInt8(check(at, 1)),
    uint16: (at) => (isLittle ? bytes.readUInt16LE(check(at, 2)) : bytes.readUInt16BE(check(at, 2))),
    uint32,
    uint64: (at) => uint32(isLittle ? at + 4 : at) * 2 ** 32 + uint32(isLittle ? at : at + 4),
    slice: (at, length) => bytes.subarray(check(at, length), at + length),
  }
}
