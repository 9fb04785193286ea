import { UnanalyzableError } from '../app-facts.ts'

/** Little-endian bytes of an archive. Positions may come from it: each is checked. */
export type CheckedBytes = {
  length: number
  u8: (at: number) => number
  u16: (at: number) => number
  u32: (at: number) => number
  slice: (start: number, end: number) => Buffer
}

export function checkBytes(bytes: Buffer): CheckedBytes {
  const check = (start: number, end: number) => {
    if (!(start >= 0 && start <= end && end <= bytes.length)) throw malformed('points outside of its file')
  }
  return {
    length: bytes.length,
    u8: (at) => {
      check(at, at + 1)
      return bytes.readUInt8(at)
    },
    u16: (at) => {
      check(at, at + 2)
      return bytes.readUInt16LE(at)
    },
    u32: (at) => {
      check(at, at + 4)
      return bytes.readUInt32LE(at)
    },
    slice: (start, end) => {
      check(start, end)
      return bytes.subarray(start, end)
    },
  }
}

export function malformed(detail: string): UnanalyzableError {
  return new UnanalyzableError('malformed_content', detail)
}

export function beyondLimit(detail: string): UnanalyzableError {
  return new UnanalyzableError('limit_exceeded', detail)
}
