import { type ByteReader, createByteReader } from '../byte-reader.ts'
import { limits } from '../limits.ts'
import { type Chunk, chunkTypes, readChunk, readChunks } from './chunks.ts'
import { beyondLimit, malformed } from './refusals.ts'
import { emptyPool, readStringPool, type StringPool } from './string-pool.ts'
import {
  type Configuration,
  type ConfiguredValue,
  decodeValue,
  type ResourceTable,
  type ResourceValue,
} from './values.ts'

/** Of one type: a chunk has the entries of a configuration. */
const maxChunksPerType = 4096

const typeFlags = { sparse: 0x01, shortOffsets: 0x02 } as const
const entryFlags = { complex: 0x0001, compact: 0x0008 } as const

type TypeChunk = { chunk: Chunk; configuration: Configuration }

/** The resources.arsc of an APK. Only where chunks begin is read at once: 10 MB take a few milliseconds. */
export function readBinaryTable(file: Buffer): ResourceTable {
  const bytes = createByteReader(file, 'little')
  const table = readChunk(bytes, 0, file.length)
  if (table.type !== chunkTypes.table) throw malformed('not a resource table')
  let pool: StringPool | undefined
  const types = new Map<number, TypeChunk[]>()
  for (const chunk of readChunks(bytes, table.headerEnd, table.end)) {
    if (chunk.type === chunkTypes.stringPool) pool ??= readStringPool(bytes, chunk)
    if (chunk.type === chunkTypes.package) indexPackage(bytes, chunk, types)
  }
  const readType = (id: number) => types.get(id >>> 16) ?? []
  return ({ id }) => {
    const found: ConfiguredValue[] = []
    for (const { chunk, configuration } of readType(id)) {
      const value = readEntry(bytes, chunk, { index: id & 0xffff, pool: pool ?? emptyPool })
      if (value !== undefined) found.push({ configuration, value })
      if (found.length === limits.configurationsPerEntry) break
    }
    return found
  }
}

/** By the upper half of an id: that of the package, and that of the type. */
function indexPackage(bytes: ByteReader, pack: Chunk, types: Map<number, TypeChunk[]>): void {
  const packageId = bytes.uint32(pack.start + 8)
  for (const chunk of readChunks(bytes, pack.headerEnd, pack.end)) {
    if (chunk.type !== chunkTypes.type) continue
    const key = ((packageId & 0xff) << 8) | bytes.uint8(chunk.start + 8)
    const chunks = types.get(key) ?? []
    if (chunks.length === maxChunksPerType) throw beyondLimit('too many configurations of a type of resource')
    chunks.push({ chunk, configuration: readConfiguration(bytes, chunk.start + 20) })
    types.set(key, chunks)
  }
}

/** More than any version of Android has. */
const maxConfigurationBytes = 64

function readConfiguration(bytes: ByteReader, at: number): Configuration {
  const size = Math.min(bytes.uint32(at), maxConfigurationBytes)
  const known = Buffer.alloc(maxConfigurationBytes)
  bytes.slice(at, size).copy(known)
  const language = readLetters(known, 8, 0x61)
  const region = readLetters(known, 10, 0x30)
  const [density, sdk] = [known.readUInt16LE(14), known.readUInt16LE(24)]
  // Size, locale, density and version of the system; whatever is left is another qualifier.
  for (const [start, end] of [
    [0, 4],
    [8, 12],
    [14, 16],
    [24, 28],
    [36, 48],
  ] as const)
    known.fill(0, start, end)
  const isPlain = language === '' && known.every((byte) => byte === 0)
  return { locale: region === '' ? language : `${language}-${region}`, density, sdk, isPlain }
}

/** Two letters, or three of five bits each behind a bit that says so. */
function readLetters(bytes: Buffer, at: number, base: number): string {
  const first = bytes.readUInt8(at)
  if (first === 0) return ''
  if ((first & 0x80) === 0) return bytes.toString('latin1', at, at + 2)
  const packed = bytes.readUInt16BE(at)
  const letters = [packed & 0x1f, (packed >>> 5) & 0x1f, (packed >>> 10) & 0x1f]
  return letters.map((letter) => String.fromCharCode(base + letter)).join('')
}

type EntryPlace = { index: number; pool: StringPool }

/** undefined: there is none in this configuration, or it is no single value. */
function readEntry(bytes: ByteReader, chunk: Chunk, { index, pool }: EntryPlace): ResourceValue | undefined {
  const offset = findOffset(bytes, chunk, index)
  if (offset === undefined) return undefined
  const at = chunk.start + bytes.uint32(chunk.start + 16) + offset
  if (at + 8 > chunk.end) throw malformed('a resource is not in its chunk')
  const flags = bytes.uint16(at + 2)
  const decode = (dataType: number, dataAt: number) => {
    const data = bytes.uint32(dataAt)
    return decodeValue(dataType, data, () => pool(data))
  }
  if ((flags & entryFlags.compact) !== 0) return decode(flags >>> 8, at + 4)
  if ((flags & entryFlags.complex) !== 0) return undefined
  const valueAt = at + bytes.uint16(at)
  return decode(bytes.uint8(valueAt + 3), valueAt + 4)
}

function findOffset(bytes: ByteReader, chunk: Chunk, index: number): number | undefined {
  const flags = bytes.uint8(chunk.start + 9)
  const count = bytes.uint32(chunk.start + 12)
  if ((flags & typeFlags.sparse) !== 0) return findSparseOffset(bytes, chunk, index)
  if (index >= count) return undefined
  if ((flags & typeFlags.shortOffsets) !== 0) {
    const short = bytes.uint16(chunk.headerEnd + index * 2)
    return short === 0xffff ? undefined : short * 4
  }
  const offset = bytes.uint32(chunk.headerEnd + index * 4)
  return offset === 0xffffffff ? undefined : offset
}

/** Pairs of index and offset, in the order of the indices. */
function findSparseOffset(bytes: ByteReader, chunk: Chunk, index: number): number | undefined {
  let low = 0
  let high = bytes.uint32(chunk.start + 12)
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const at = chunk.headerEnd + middle * 4
    const found = bytes.uint16(at)
    if (found === index) return bytes.uint16(at + 2) * 4
    if (found < index) low = middle + 1
    else high = middle
  }
  return undefined
}
