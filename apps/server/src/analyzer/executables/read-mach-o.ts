import { type ByteReader, createByteReader } from '../byte-reader.ts'
import { limits } from '../limits.ts'
import { readOptional } from '../optional.ts'

/** As much of an executable as holds the longest table of slices that is accepted. */
export const machHeaderBytes = 4096

const magic32 = 0xfeedface
const magic64 = 0xfeedfacf
const fatMagic = 0xcafebabe
const fatMagic64 = 0xcafebabf
const headerBytes = { [magic32]: 28, [magic64]: 32 }

/** The high byte of a subtype holds flags. */
const subtypeMask = 0xffffff

/**
 * What the executable runs on, each once; nothing when it is no Mach-O or a broken one. `sizeBytes` is the size of the
 * whole file, of which `start` has the first bytes.
 */
export function readMachArchitectures(start: Buffer, sizeBytes: number): string[] {
  return readOptional(() => [...new Set(readSlices(start, sizeBytes))]) ?? []
}

function readSlices(start: Buffer, sizeBytes: number): string[] {
  const big = createByteReader(start, 'big')
  const magic = big.uint32(0)
  if (magic === fatMagic || magic === fatMagic64) return readTable(big, sizeBytes, magic === fatMagic64)
  for (const reader of [createByteReader(start, 'little'), big]) {
    const name = reader.uint32(0)
    if (name !== magic32 && name !== magic64) continue
    reader.slice(0, headerBytes[name])
    return toNames(reader.uint32(4), reader.uint32(8))
  }
  return []
}

/** A Java class begins with the same four bytes; what would be its number of slices is 45 or more. */
function readTable(reader: ByteReader, sizeBytes: number, is64: boolean): string[] {
  const count = reader.uint32(4)
  if (count > limits.machSlices) return []
  const rowBytes = is64 ? 32 : 20
  const names: string[] = []
  for (let index = 0; index < count; index += 1) {
    const row = 8 + index * rowBytes
    const offset = is64 ? reader.uint64(row + 8) : reader.uint32(row + 8)
    const length = is64 ? reader.uint64(row + 16) : reader.uint32(row + 12)
    if (offset < 8 + count * rowBytes || length < headerBytes[magic32] || offset + length > sizeBytes) return []
    names.push(...toNames(reader.uint32(row), reader.uint32(row + 4)))
  }
  return names
}

const types = { arm: 12, arm64: 0x0100000c, arm64For32: 0x0200000c, i386: 7, x86_64: 0x01000007 }
const armSubtypes: Record<number, string> = { 9: 'armv7', 11: 'armv7s', 12: 'armv7k' }

/** None for what no app of today is built for, such as PowerPC. */
function toNames(type: number, subtype: number): string[] {
  const variant = subtype & subtypeMask
  if (type === types.arm64) return [variant === 2 ? 'arm64e' : 'arm64']
  if (type === types.arm64For32) return ['arm64_32']
  if (type === types.x86_64) return ['x86_64']
  if (type === types.i386) return ['i386']
  const name = type === types.arm ? armSubtypes[variant] : undefined
  return name === undefined ? [] : [name]
}
