import { crc32, deflateRawSync } from 'node:zlib'
import type { ByteSource } from '../../../src/analyzer/archive.ts'

/** Bytes of an archive: as they are, or that many of a pattern that is made when it is read. */
export type Piece = Buffer | { pattern: Buffer; sizeBytes: number }

/** An entry. Everything but its name and content is what an honest archive would say, unless it is given. */
export type ZipInput = {
  name: string | Buffer
  content?: Buffer | string | Exclude<Piece, Buffer>
  method?: number
  flags?: number
  /** What is stored of it, instead of what the content compresses to. */
  compressed?: Buffer
  sizeBytes?: number
  compressedBytes?: number
  crc32?: number
  headerOffset?: number
}

export type ZipOptions = {
  zip64?: boolean
  entryCount?: bigint
  directoryOffset?: bigint
  comment?: Buffer
}

export function buildZip(inputs: Iterable<ZipInput>, options: ZipOptions = {}): Piece[] {
  const pieces: Piece[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const input of inputs) {
    const name = Buffer.from(input.name)
    const { data, entry } = describeEntry(input)
    directory.push(writeDirectoryEntry(name, entry, input.headerOffset ?? offset, options.zip64 ?? false))
    const header = writeLocalHeader(name, entry)
    pieces.push(header, data)
    offset += header.length + sizeOf(data)
  }
  const list = Buffer.concat(directory)
  pieces.push(list, writeEnd({ entries: BigInt(directory.length), list, offset: BigInt(offset) }, options))
  return pieces
}

type EntryFields = { method: number; flags: number; crc32: number; compressedBytes: number; sizeBytes: number }

function describeEntry(input: ZipInput): { data: Piece; entry: EntryFields } {
  const content = typeof input.content === 'string' ? Buffer.from(input.content) : (input.content ?? Buffer.alloc(0))
  const method = input.method ?? (Buffer.isBuffer(content) && content.length > 0 ? 8 : 0)
  const packed = Buffer.isBuffer(content) && method === 8 ? deflateRawSync(content) : content
  const data = input.compressed ?? packed
  return {
    data,
    entry: {
      method,
      flags: input.flags ?? 0,
      crc32: input.crc32 ?? (Buffer.isBuffer(content) ? crc32(content) : 0),
      compressedBytes: input.compressedBytes ?? sizeOf(data),
      sizeBytes: input.sizeBytes ?? sizeOf(content),
    },
  }
}

function writeLocalHeader(name: Buffer, entry: EntryFields): Buffer {
  const header = Buffer.alloc(30)
  header.writeUInt32LE(0x04034b50, 0)
  writeFields(header, 6, entry)
  header.writeUInt16LE(name.length, 26)
  return Buffer.concat([header, name])
}

function writeDirectoryEntry(name: Buffer, entry: EntryFields, headerOffset: number, isZip64: boolean): Buffer {
  const header = Buffer.alloc(46)
  header.writeUInt32LE(0x02014b50, 0)
  writeFields(header, 8, entry)
  header.writeUInt16LE(name.length, 28)
  header.writeUInt32LE(isZip64 ? 0xffffffff : headerOffset, 42)
  const extra = isZip64 ? Buffer.alloc(12) : Buffer.alloc(0)
  if (isZip64) {
    extra.writeUInt16LE(1, 0)
    extra.writeUInt16LE(8, 2)
    extra.writeBigUInt64LE(BigInt(headerOffset), 4)
  }
  header.writeUInt16LE(extra.length, 30)
  return Buffer.concat([header, name, extra])
}

function writeFields(header: Buffer, at: number, entry: EntryFields): void {
  header.writeUInt16LE(entry.flags, at)
  header.writeUInt16LE(entry.method, at + 2)
  header.writeUInt32LE(entry.crc32, at + 8)
  header.writeUInt32LE(entry.compressedBytes, at + 12)
  header.writeUInt32LE(entry.sizeBytes, at + 16)
}

function writeEnd(
  { entries, list, offset }: { entries: bigint; list: Buffer; offset: bigint },
  { zip64 = false, entryCount = entries, directoryOffset = offset, comment = Buffer.alloc(0) }: ZipOptions,
): Buffer {
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(zip64 ? 0xffff : Number(entryCount), 8)
  end.writeUInt16LE(zip64 ? 0xffff : Number(entryCount), 10)
  end.writeUInt32LE(list.length, 12)
  end.writeUInt32LE(zip64 ? 0xffffffff : Number(directoryOffset), 16)
  end.writeUInt16LE(comment.length, 20)
  if (!zip64) return Buffer.concat([end, comment])
  const end64 = Buffer.alloc(56)
  end64.writeUInt32LE(0x06064b50, 0)
  end64.writeBigUInt64LE(44n, 4)
  end64.writeBigUInt64LE(entryCount, 24)
  end64.writeBigUInt64LE(entryCount, 32)
  end64.writeBigUInt64LE(BigInt(list.length), 40)
  end64.writeBigUInt64LE(directoryOffset, 48)
  const locator = Buffer.alloc(20)
  locator.writeUInt32LE(0x07064b50, 0)
  locator.writeBigUInt64LE(offset + BigInt(list.length), 8)
  locator.writeUInt32LE(1, 16)
  return Buffer.concat([end64, locator, end, comment])
}

export type CountingSource = ByteSource & { reads: number; readBytes: number }

/** Reads the pieces one after the other, and counts. */
export function openPieces(pieces: Piece[]): CountingSource {
  const starts: number[] = []
  let sizeBytes = 0
  for (const piece of pieces) {
    starts.push(sizeBytes)
    sizeBytes += sizeOf(piece)
  }
  const source: CountingSource = {
    sizeBytes,
    reads: 0,
    readBytes: 0,
    read: async (offset, length) => {
      if (offset < 0 || length < 1 || offset + length > sizeBytes)
        throw new Error(`a read outside: ${offset}, ${length}`)
      source.reads++
      source.readBytes += length
      const parts: Buffer[] = []
      for (const [index, piece] of pieces.entries()) {
        const start = starts[index] ?? 0
        const from = Math.max(offset, start)
        const to = Math.min(offset + length, start + sizeOf(piece))
        if (from < to) parts.push(cut(piece, from - start, to - start))
      }
      return Buffer.concat(parts)
    },
  }
  return source
}

export function openZip(inputs: Iterable<ZipInput>, options: ZipOptions = {}): CountingSource {
  return openPieces(buildZip(inputs, options))
}

function cut(piece: Piece, from: number, to: number): Buffer {
  if (Buffer.isBuffer(piece)) return piece.subarray(from, to)
  const { pattern } = piece
  const start = Math.floor(from / pattern.length) * pattern.length
  const count = Math.ceil((to - start) / pattern.length)
  return Buffer.concat(Array.from({ length: count }, () => pattern)).subarray(from - start, to - start)
}

export function sizeOf(piece: Piece): number {
  return Buffer.isBuffer(piece) ? piece.length : piece.sizeBytes
}

/** Bytes that take room in an archive and that nobody should read. */
export function fillRoom(sizeBytes: number): Exclude<Piece, Buffer> {
  return { pattern: roomPattern, sizeBytes }
}

const roomPattern = Buffer.from(Array.from({ length: 4096 }, (_, index) => (index * 2_654_435_761) >>> 24))
