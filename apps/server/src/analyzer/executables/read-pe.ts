import { type ByteReader, createByteReader } from '../byte-reader.ts'
import { readOptional } from '../optional.ts'

/** As much of an executable as is read for its headers: they are within the first page. */
export const peStartBytes = 4096

export type PeFacts = {
  /** undefined: a machine that no app is built for. */
  architecture: string | undefined
  operatingSystemVersion: string
  subsystemVersion: string
}

const dosMagic = 0x5a4d
const peMagic = 0x4550
const machines: Record<number, string> = { 332: 'x86', 34404: 'x86_64', 43620: 'arm64' }
const optionalMagics = [0x10b, 0x20b]

/** Where the parts of its headers are. */
export type PeLayout = { reader: ByteReader; fileHeader: number; optionalHeader: number; is64: boolean }

/** What the first bytes of a program for Windows say; undefined when it is none. */
export function readPe(start: Buffer): PeFacts | undefined {
  return readOptional(() => {
    const layout = readPeLayout(start)
    if (layout === undefined) return undefined
    const { reader, fileHeader, optionalHeader } = layout
    const readVersion = (at: number) => `${reader.uint16(at)}.${reader.uint16(at + 2)}`
    return {
      architecture: machines[reader.uint16(fileHeader)],
      operatingSystemVersion: readVersion(optionalHeader + 40),
      subsystemVersion: readVersion(optionalHeader + 48),
    }
  })
}

/** undefined, or malformed content: no program for Windows. */
export function readPeLayout(bytes: Buffer): PeLayout | undefined {
  const reader = createByteReader(bytes, 'little')
  if (reader.uint16(0) !== dosMagic) return undefined
  const pe = reader.uint32(0x3c)
  if (reader.uint32(pe) !== peMagic) return undefined
  const fileHeader = pe + 4
  const optionalHeader = fileHeader + 20
  const magic = reader.uint16(optionalHeader)
  // Versions are in the part of 68 bytes that every optional header has.
  if (!optionalMagics.includes(magic) || reader.uint16(fileHeader + 16) < 68) return undefined
  return { reader, fileHeader, optionalHeader, is64: magic === 0x20b }
}
