/** Executables of nothing but headers, laid out by the formats' own documents. */

export function buildMach(input: { type: number; subtype?: number; is64?: boolean; isBig?: boolean }): Buffer {
  const { type, subtype = 0, is64 = true, isBig = false } = input
  const bytes = Buffer.alloc(64)
  const write = (value: number, at: number) => (isBig ? bytes.writeUInt32BE(value, at) : bytes.writeUInt32LE(value, at))
  write(is64 ? 0xfeedfacf : 0xfeedface, 0)
  write(type, 4)
  write(subtype, 8)
  write(2, 12)
  return bytes
}

export type Slice = { type: number; subtype?: number; offset?: number; length?: number }

/** A table of slices, and room for what they say they take. */
export function buildFat(slices: Slice[], { is64 = false, count = slices.length } = {}): Buffer {
  const bytes = Buffer.alloc(4096)
  bytes.writeUInt32BE(is64 ? 0xcafebabf : 0xcafebabe, 0)
  bytes.writeUInt32BE(count, 4)
  for (const [index, { type, subtype = 0, offset = 2048, length = 64 }] of slices.entries()) {
    const row = 8 + index * (is64 ? 32 : 20)
    bytes.writeUInt32BE(type, row)
    bytes.writeUInt32BE(subtype, row + 4)
    if (is64) bytes.writeBigUInt64BE(BigInt(offset), row + 8)
    else bytes.writeUInt32BE(offset, row + 8)
    if (is64) bytes.writeBigUInt64BE(BigInt(length), row + 16)
    else bytes.writeUInt32BE(length, row + 12)
  }
  return bytes
}

export const machTypes = {
  arm64: 0x0100000c,
  arm64For32: 0x0200000c,
  arm: 12,
  x86_64: 0x01000007,
  i386: 7,
  powerPc: 18,
}

/** A program with one segment of notes: something else first, as linkers do, then the tag of the oldest kernel. */
export function buildElf(
  input: {
    machine?: number
    is64?: boolean
    isBig?: boolean
    kernel?: number[]
    system?: number
    fileType?: number
  } = {},
): Buffer {
  const { machine = 62, is64 = true, isBig = false, kernel = [3, 2, 0], system = 0, fileType = 3 } = input
  const bytes = Buffer.alloc(512)
  const write16 = (value: number, at: number) =>
    isBig ? bytes.writeUInt16BE(value, at) : bytes.writeUInt16LE(value, at)
  const write32 = (value: number, at: number) =>
    isBig ? bytes.writeUInt32BE(value, at) : bytes.writeUInt32LE(value, at)
  /** Of 64 bits where the class has those; all values here fit into 32. */
  const writeWord = (value: number, at: number) => write32(value, is64 && isBig ? at + 4 : at)
  bytes.write('\x7fELF', 0, 'latin1')
  bytes.writeUInt8(is64 ? 2 : 1, 4)
  bytes.writeUInt8(isBig ? 2 : 1, 5)
  write16(fileType, 16)
  write16(machine, 18)
  const [table, notes, notesBytes] = [64, 256, 16 + 32]
  writeWord(table, is64 ? 32 : 28)
  write16(is64 ? 56 : 32, is64 ? 54 : 42)
  write16(1, is64 ? 56 : 44)
  write32(4, table)
  writeWord(notes, table + (is64 ? 8 : 4))
  writeWord(notesBytes, table + (is64 ? 32 : 16))
  writeWord(4, table + (is64 ? 48 : 28))
  for (const [index, value] of [2, 0, 9].entries()) write32(value, notes + index * 4)
  bytes.write('X\0', notes + 12, 'latin1')
  for (const [index, value] of [4, 16, 1].entries()) write32(value, notes + 16 + index * 4)
  bytes.write('GNU\0', notes + 28, 'latin1')
  for (const [index, value] of [system, ...kernel].entries()) write32(value, notes + 32 + index * 4)
  return bytes
}

const resourceAddress = 0x3000
const resourcePlace = 0x400

/** A program with a section of resources: an icon for every image, each in one language. */
export function buildPe(
  input: { machine?: number; is64?: boolean; system?: number[]; subsystem?: number[]; icons?: Buffer[] } = {},
): Buffer {
  const { machine = 0x8664, is64 = true, system = [6, 2], subsystem = [6, 1], icons = [] } = input
  const resources = buildResources(icons)
  const headers = Buffer.alloc(resourcePlace)
  headers.write('MZ', 0, 'latin1')
  const pe = 0x80
  headers.writeUInt32LE(pe, 0x3c)
  headers.write('PE\0\0', pe, 'latin1')
  headers.writeUInt16LE(machine, pe + 4)
  headers.writeUInt16LE(1, pe + 6)
  const optionalBytes = is64 ? 240 : 224
  headers.writeUInt16LE(optionalBytes, pe + 20)
  const optional = pe + 24
  headers.writeUInt16LE(is64 ? 0x20b : 0x10b, optional)
  for (const [index, value] of system.entries()) headers.writeUInt16LE(value, optional + 40 + index * 2)
  for (const [index, value] of subsystem.entries()) headers.writeUInt16LE(value, optional + 48 + index * 2)
  const directories = optional + (is64 ? 112 : 96)
  headers.writeUInt32LE(16, directories - 4)
  headers.writeUInt32LE(icons.length > 0 ? resourceAddress : 0, directories + 16)
  const section = optional + optionalBytes
  headers.write('.rsrc', section, 'latin1')
  for (const [index, value] of [resources.length, resourceAddress, resources.length, resourcePlace].entries()) {
    headers.writeUInt32LE(value, section + 8 + index * 4)
  }
  return Buffer.concat([headers, resources])
}

function buildResources(icons: Buffer[]): Buffer {
  const folderBytes = 24
  const kinds = 0
  const all = folderBytes
  const languages = all + 16 + icons.length * 8
  const data = languages + icons.length * folderBytes
  const images = data + icons.length * 16
  const head = Buffer.alloc(images)
  const writeFolder = (place: number, rows: { name: number; target: number }[]) => {
    head.writeUInt16LE(rows.length, place + 14)
    for (const [index, { name, target }] of rows.entries()) {
      head.writeUInt32LE(name, place + 16 + index * 8)
      head.writeUInt32LE(target, place + 20 + index * 8)
    }
  }
  const folder = 0x80000000
  writeFolder(kinds, [{ name: 3, target: folder + all }])
  const rows = icons.map((_, index) => ({ name: index + 1, target: folder + languages + index * folderBytes }))
  writeFolder(all, rows)
  let place = images
  for (const [index, icon] of icons.entries()) {
    writeFolder(languages + index * folderBytes, [{ name: 1033, target: data + index * 16 }])
    head.writeUInt32LE(resourceAddress + place, data + index * 16)
    head.writeUInt32LE(icon.length, data + index * 16 + 4)
    place += icon.length
  }
  return Buffer.concat([head, ...icons])
}
