const slotWords = 5
const initialSlots = 256
/** The number word of a slot: 0 is free, this is a device that was removed, anything else is the number and one. */
const removed = 0xffffffff

/** Which number a device has, by the 128 bits of its client key. 20 bytes a slot; at most two thirds are used. */
export type DeviceDirectory = {
  /** undefined: not known here. */
  find: (words: Uint32Array, offset: number) => number | undefined
  set: (words: Uint32Array, offset: number, number: number) => void
  remove: (words: Uint32Array, offset: number) => void
  count: () => number
  sizeBytes: () => number
}

/** An open-addressing table: a Map of strings takes 200 bytes a device and five times as long. */
export function createDeviceDirectory(): DeviceDirectory {
  let table = new Uint32Array(initialSlots * slotWords)
  let mask = initialSlots - 1
  let used = 0
  let known = 0

  /** The slot of the key, or the free one where it would go. */
  const slotOf = (words: Uint32Array, offset: number): number => {
    const first = words[offset] ?? 0
    const second = words[offset + 1] ?? 0
    const third = words[offset + 2] ?? 0
    const fourth = words[offset + 3] ?? 0
    let slot = mix(first, second, third, fourth) & mask
    for (;;) {
      const at = slot * slotWords
      if (table[at + 4] === 0) return at
      if (
        table[at] === first &&
        table[at + 1] === second &&
        table[at + 2] === third &&
        table[at + 3] === fourth &&
        table[at + 4] !== removed
      ) {
        return at
      }
      slot = (slot + 1) & mask
    }
  }
  const grow = () => {
    const smaller = table
    table = new Uint32Array(smaller.length * 2)
    mask = mask * 2 + 1
    used = known
    for (let at = 0; at < smaller.length; at += slotWords) {
      const number = smaller[at + 4] ?? 0
      if (number === 0 || number === removed) continue
      table.set(smaller.subarray(at, at + slotWords), slotOf(smaller, at))
    }
  }
  return {
    find: (words, offset) => {
      const number = table[slotOf(words, offset) + 4] ?? 0
      return number === 0 ? undefined : number - 1
    },
    set: (words, offset, number) => {
      const at = slotOf(words, offset)
      if (table[at + 4] === 0) {
        used += 1
        known += 1
      }
      for (let word = 0; word < 4; word += 1) table[at + word] = words[offset + word] ?? 0
      table[at + 4] = number + 1
      if (used * 3 > (mask + 1) * 2) grow()
    },
    remove: (words, offset) => {
      const at = slotOf(words, offset)
      if (table[at + 4] === 0) return
      table[at + 4] = removed
      known -= 1
    },
    count: () => known,
    sizeBytes: () => table.byteLength,
  }
}

/** Also the bits of UUIDs that are mostly a time (version 7) must spread. */
function mix(first: number, second: number, third: number, fourth: number): number {
  let hash = Math.imul(first ^ Math.imul(second, 0x9e3779b1), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 15) ^ third, 0xc2b2ae35)
  hash = Math.imul(hash ^ (hash >>> 13) ^ fourth, 0x27d4eb2f)
  return (hash ^ (hash >>> 16)) >>> 0
}
