import { zstdDecompressSync } from 'node:zlib'

const magic = 0xb1df
const version = 0x1000

/**
 * What a device does with a patch: inflates the zstd frame and applies the bipatch diff to the file that it shipped with.
 * A diff is a row of records: bytes to add to the old ones, bytes to insert, and how far to move in the old file.
 */
export function applyPatch(base: Buffer, patch: Buffer): Buffer {
  const diff = zstdDecompressSync(patch)
  if (diff.readUInt32LE(0) !== magic || diff.readUInt32LE(4) !== version) throw new Error('not a bipatch diff')
  let at = 8
  let basePosition = 0
  const parts: Buffer[] = []
  const readVarint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = diff.readUInt8(at)
      at += 1
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  const take = (length: number) => {
    const bytes = diff.subarray(at, at + length)
    at += length
    return bytes
  }
  while (at < diff.length) {
    const added = Buffer.from(take(Number(readVarint())))
    for (let index = 0; index < added.length; index += 1) {
      added[index] = ((added[index] ?? 0) + (base[basePosition + index] ?? 0)) & 0xff
    }
    basePosition += added.length
    parts.push(added, take(Number(readVarint())))
    const zigzag = readVarint()
    basePosition += Number((zigzag >> 1n) ^ -(zigzag & 1n))
  }
  return Buffer.concat(parts)
}
