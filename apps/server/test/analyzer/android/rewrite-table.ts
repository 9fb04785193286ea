type Variant = { shortOffsets: boolean; compact: boolean }

const [packageType, typeType] = [0x0200, 0x0201]

/** The same table in encodings that tools of today write, and those that made the fixtures do not. */
export function rewriteTable(table: Buffer, variant: Variant): Buffer {
  const headerBytes = table.readUInt16LE(2)
  const chunks = readChunks(table, headerBytes).map((chunk) =>
    chunk.readUInt16LE(0) === packageType ? rewritePackage(chunk, variant) : chunk,
  )
  return join(table.subarray(0, headerBytes), chunks)
}

function rewritePackage(chunk: Buffer, variant: Variant): Buffer {
  const headerBytes = chunk.readUInt16LE(2)
  const chunks = readChunks(chunk, headerBytes).map((inner) =>
    inner.readUInt16LE(0) === typeType ? rewriteType(inner, variant) : inner,
  )
  return join(chunk.subarray(0, headerBytes), chunks)
}

function readChunks(bytes: Buffer, start: number): Buffer[] {
  const chunks: Buffer[] = []
  for (let at = start; at < bytes.length; ) {
    const end = at + bytes.readUInt32LE(at + 4)
    chunks.push(bytes.subarray(at, end))
    at = end
  }
  return chunks
}

function join(header: Buffer, chunks: Buffer[]): Buffer {
  const joined = Buffer.concat([header, ...chunks])
  joined.writeUInt32LE(joined.length, 4)
  return joined
}

function rewriteType(chunk: Buffer, { shortOffsets, compact }: Variant): Buffer {
  if (chunk.readUInt8(9) !== 0) throw new Error('has another encoding already')
  const headerBytes = chunk.readUInt16LE(2)
  const count = chunk.readUInt32LE(12)
  const entriesStart = chunk.readUInt32LE(16)
  const offsets = Buffer.alloc(shortOffsets ? Math.ceil(count / 2) * 4 : count * 4, 0xff)
  const entries: Buffer[] = []
  let length = 0
  for (let index = 0; index < count; index += 1) {
    const offset = chunk.readUInt32LE(headerBytes + index * 4)
    if (offset === 0xffffffff) continue
    const entry = rewriteEntry(chunk, entriesStart + offset, compact)
    if (shortOffsets) offsets.writeUInt16LE(length / 4, index * 2)
    else offsets.writeUInt32LE(length, index * 4)
    entries.push(entry)
    length += entry.length
  }
  const header = Buffer.from(chunk.subarray(0, headerBytes))
  header.writeUInt8(shortOffsets ? 2 : 0, 9)
  header.writeUInt32LE(headerBytes + offsets.length, 16)
  return join(header, [offsets, ...entries])
}

function rewriteEntry(chunk: Buffer, at: number, compact: boolean): Buffer {
  const size = chunk.readUInt16LE(at)
  if ((chunk.readUInt16LE(at + 2) & 1) !== 0) throw new Error('has more than one value')
  if (!compact) return chunk.subarray(at, at + size + 8)
  const entry = Buffer.alloc(8)
  entry.writeUInt16LE(chunk.readUInt32LE(at + 4), 0)
  entry.writeUInt16LE(8 | (chunk.readUInt8(at + size + 3) << 8), 2)
  entry.writeUInt32LE(chunk.readUInt32LE(at + size + 4), 4)
  return entry
}
