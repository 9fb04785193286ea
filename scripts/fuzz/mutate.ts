const numbers = [0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 1000, 4095, 32_767, 32_768, 65_535]
const largeNumbers = [...numbers, 65_536, 200_000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff]

/** A stream of numbers that a seed decides, so that a run can be repeated. */
export type Random = (below: number) => number

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

/** One to eight changes. `other`: an input of which parts may be taken. */
export function mutate(input: Buffer, other: Buffer, random: Random): Buffer {
  let bytes: Buffer = Buffer.from(input)
  for (let left = 1 + random(random(4) === 0 ? 8 : 2); left > 0; left--) {
    bytes = changes[random(changes.length)]?.(bytes, other, random) ?? bytes
    if (bytes.length === 0) bytes = Buffer.from([random(256)])
  }
  return bytes.length > maxBytes ? bytes.subarray(0, maxBytes) : bytes
}

export const maxBytes = 256 * 1024

type Change = (bytes: Buffer, other: Buffer, random: Random) => Buffer

const changes: Change[] = [
  (bytes, _other, random) => {
    const at = random(bytes.length)
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random(8))
    return bytes
  },
  (bytes, _other, random) => {
    bytes[random(bytes.length)] = random(256)
    return bytes
  },
  (bytes, _other, random) => writeNumber(bytes, random),
  (bytes, _other, random) => writeNumber(bytes, random),
  (bytes, _other, random) => addToNumber(bytes, random),
  (bytes, _other, random) => {
    const [from, to] = chooseRange(bytes, random)
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)])
  },
  (bytes, _other, random) => {
    const [from, to] = chooseRange(bytes, random)
    const at = random(bytes.length + 1)
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(from, to), bytes.subarray(at)])
  },
  (bytes, _other, random) => {
    const [from, to] = chooseRange(bytes, random)
    bytes.copy(bytes, random(bytes.length), from, to)
    return bytes
  },
  (bytes, _other, random) => {
    const [from, to] = chooseRange(bytes, random)
    const repeated = Array.from({ length: 2 + random(64) }, () => bytes.subarray(from, to))
    return Buffer.concat([bytes.subarray(0, from), ...repeated, bytes.subarray(to)])
  },
  (bytes, other, random) => {
    const [from, to] = chooseRange(other, random)
    const at = random(bytes.length + 1)
    return Buffer.concat([bytes.subarray(0, at), other.subarray(from, to), bytes.subarray(at + random(to - from + 1))])
  },
  (bytes, _other, random) => bytes.subarray(0, 1 + random(bytes.length)),
]

/** Short ones more often. */
function chooseRange(bytes: Buffer, random: Random): [from: number, to: number] {
  const from = random(bytes.length)
  return [from, from + 1 + random(Math.min(bytes.length - from, 4 << random(12)))]
}

function writeNumber(bytes: Buffer, random: Random): Buffer {
  const size = [1, 2, 4][random(3)] ?? 1
  if (bytes.length < size) return bytes
  const choices = size === 4 ? largeNumbers : numbers
  const value = (choices[random(choices.length)] ?? 0) % 256 ** size
  const at = random(bytes.length - size + 1)
  if (random(2) === 0) bytes.writeUIntLE(value, at, size)
  else bytes.writeUIntBE(value, at, size)
  return bytes
}

function addToNumber(bytes: Buffer, random: Random): Buffer {
  const size = [1, 2, 4][random(3)] ?? 1
  if (bytes.length < size) return bytes
  const at = random(bytes.length - size + 1)
  const change = random(33) - 16
  const wrap = (value: number) => (value + change + 256 ** size) % 256 ** size
  if (random(2) === 0) bytes.writeUIntLE(wrap(bytes.readUIntLE(at, size)), at, size)
  else bytes.writeUIntBE(wrap(bytes.readUIntBE(at, size)), at, size)
  return bytes
}
