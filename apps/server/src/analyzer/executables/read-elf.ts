import { type ByteReader, createByteReader, type Endianness } from '../byte-reader.ts'
import { readOptional } from '../optional.ts'

/** As much of an executable as is read: linkers put the notes right behind the headers. */
export const elfStartBytes = 64 * 1024

export type ElfFacts = {
  /** undefined: a machine that no app is built for. */
  architecture: string | undefined
  /** The oldest kernel that runs it, such as `3.2.0`. undefined: it does not say so. */
  kernelVersion: string | undefined
}

const magic = 0x7f454c46
const machines: Record<number, string> = { 3: 'x86', 40: 'arm', 62: 'x86_64', 183: 'arm64', 243: 'riscv64' }
const machineRiscv = 243
/** Programs: with a fixed address, or with any. */
const executableTypes = [2, 3]
const noteSegment = 4
const abiTag = 1
const linux = 0
const maxSegments = 64
const maxNotes = 64

type Layout = { reader: ByteReader; is64: boolean }

/** What the first bytes of a program for Linux say; undefined when it is none. */
export function readElf(start: Buffer): ElfFacts | undefined {
  return readOptional(() => {
    const layout = readLayout(start)
    if (layout === undefined || !executableTypes.includes(layout.reader.uint16(16))) return undefined
    const machine = layout.reader.uint16(18)
    return {
      architecture: machine === machineRiscv && !layout.is64 ? undefined : machines[machine],
      // A broken table of segments does not make the machine less certain.
      kernelVersion: readOptional(() => findKernelVersion(layout)),
    }
  })
}

function readLayout(start: Buffer): Layout | undefined {
  const head = createByteReader(start, 'big')
  if (head.uint32(0) !== magic) return undefined
  const [sizeClass, order] = [head.uint8(4), head.uint8(5)]
  if ((sizeClass !== 1 && sizeClass !== 2) || (order !== 1 && order !== 2)) return undefined
  const endianness: Endianness = order === 1 ? 'little' : 'big'
  return { reader: createByteReader(start, endianness), is64: sizeClass === 2 }
}

function findKernelVersion({ reader, is64 }: Layout): string | undefined {
  const table = is64 ? reader.uint64(32) : reader.uint32(28)
  const rowBytes = reader.uint16(is64 ? 54 : 42)
  const count = Math.min(reader.uint16(is64 ? 56 : 44), maxSegments)
  for (let index = 0; index < count; index += 1) {
    const row = table + index * rowBytes
    if (reader.uint32(row) !== noteSegment) continue
    const offset = is64 ? reader.uint64(row + 8) : reader.uint32(row + 4)
    const length = is64 ? reader.uint64(row + 32) : reader.uint32(row + 16)
    const align = (is64 ? reader.uint64(row + 48) : reader.uint32(row + 28)) === 8 ? 8 : 4
    const version = readOptional(() => findAbiTag(reader, { offset, end: offset + length, align }))
    if (version !== undefined) return version
  }
  return undefined
}

function findAbiTag(
  reader: ByteReader,
  { offset, end, align }: { offset: number; end: number; align: number },
): string | undefined {
  const pad = (length: number) => Math.ceil(length / align) * align
  let at = offset
  for (let count = 0; count < maxNotes && at + 12 <= end; count += 1) {
    const [nameBytes, valueBytes, type] = [reader.uint32(at), reader.uint32(at + 4), reader.uint32(at + 8)]
    // The name ends at a multiple of the alignment counted from the note's start, where its header takes 12 bytes.
    const value = at + pad(12 + nameBytes)
    if (type === abiTag && nameBytes === 4 && valueBytes >= 16 && reader.slice(at + 12, 4).equals(gnu)) {
      return reader.uint32(value) === linux ? readVersion(reader, value + 4) : undefined
    }
    at = value + pad(valueBytes)
  }
  return undefined
}

const gnu = Buffer.from('GNU\0')

function readVersion(reader: ByteReader, at: number): string {
  return [reader.uint32(at), reader.uint32(at + 4), reader.uint32(at + 8)].join('.')
}
