const initialSlots = 64

/** Marks of lines: whole numbers from 1 to 2^52. A Set of them takes five times the memory and twice the time. */
export type MarkSet = {
  /** Whether it was not there. */
  add: (mark: number) => boolean
  count: () => number
  encode: () => Buffer
}

export function createMarkSet(stored?: Buffer): MarkSet {
  const known = stored === undefined ? new Float64Array(0) : readMarks(stored)
  let table = new Float64Array(2 ** Math.ceil(Math.log2(Math.max(initialSlots, known.length * 2))))
  let count = 0

  const insert = (mark: number): boolean => {
    const mask = table.length - 1
    let slot = (mark ^ (mark / 2 ** 32)) & mask
    for (;;) {
      const there = table[slot] ?? 0
      if (there === mark) return false
      if (there === 0) break
      slot = (slot + 1) & mask
    }
    table[slot] = mark
    count += 1
    return true
  }
  const grow = () => {
    const smaller = table
    table = new Float64Array(smaller.length * 2)
    count = 0
    for (const mark of smaller) if (mark !== 0) insert(mark)
  }
  for (const mark of known) insert(mark)
  return {
    add: (mark) => {
      const isNew = insert(mark)
      if (count * 2 > table.length) grow()
      return isNew
    },
    count: () => count,
    encode: () => {
      const marks = table.filter((mark) => mark !== 0)
      return Buffer.from(marks.buffer, marks.byteOffset, marks.byteLength)
    },
  }
}

function readMarks(stored: Buffer): Float64Array {
  return new Float64Array(stored.buffer.slice(stored.byteOffset, stored.byteOffset + stored.length) as ArrayBuffer)
}

/** 52 bits of an observation: of a device (its key at `offset`), at a time (Unix ms), in what `contextHash` stands for. */
export function markOf(words: Uint32Array, offset: number, timeMs: number, contextHash: number): number {
  const second = Math.floor(timeMs / 2 ** 32)
  let low = contextHash
  let high = ~contextHash
  for (const word of [words[offset], words[offset + 1], words[offset + 2], words[offset + 3], timeMs >>> 0, second]) {
    low = Math.imul(low ^ (word ?? 0), 0x85ebca6b)
    low ^= low >>> 15
    high = Math.imul(high ^ (word ?? 0), 0xc2b2ae35)
    high ^= high >>> 13
  }
  return ((high >>> 0) & 0xfffff) * 2 ** 32 + (Math.imul(low ^ (low >>> 16), 0x27d4eb2f) >>> 0) + 1
}

/** 32 bits of FNV-1a. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash
}
