/** Devices of one chunk. */
export const chunkDevices = 65_536

const initialCapacity = 64
const deviceBytes = 22
const headerBytes = 8

/** What is known of 65,536 devices at most, a column each. */
export type Chunk = {
  count: number
  /** Time of the first and of the last observation (Unix ms). 0: the device was removed. */
  firstMs: Float64Array<ArrayBuffer>
  lastMs: Float64Array<ArrayBuffer>
  /** What the device has installed: a number of `InstallStates`. */
  state: Uint32Array<ArrayBuffer>
  /** Number of the release of the last observation. */
  release: Uint16Array<ArrayBuffer>
}

export type DeviceColumns = {
  chunks: Chunk[]
  count: () => number
  /** The chunk of a device, with room for it. */
  chunkOf: (number: number) => Chunk
  sizeBytes: () => number
}

export function createDeviceColumns(): DeviceColumns {
  const chunks: Chunk[] = []
  return {
    chunks,
    count: () => chunks.reduce((sum, { count }) => sum + count, 0),
    chunkOf: (number) => {
      const index = Math.floor(number / chunkDevices)
      while (chunks.length <= index) chunks.push(createChunk(initialCapacity))
      const chunk = chunks[index] as Chunk
      const needed = (number % chunkDevices) + 1
      if (needed > chunk.count) {
        if (needed > chunk.firstMs.length) growChunk(chunk, needed)
        chunk.count = needed
      }
      return chunk
    },
    sizeBytes: () => chunks.reduce((sum, { firstMs }) => sum + firstMs.length * deviceBytes, 0),
  }
}

/** When the first of all devices was first seen (Unix ms). Infinity when there is none. */
export function findFirstMs({ chunks }: DeviceColumns): number {
  let earliest = Number.POSITIVE_INFINITY
  for (const { count, firstMs } of chunks) {
    for (let index = 0; index < count; index += 1) {
      const first = firstMs[index] ?? 0
      if (first !== 0 && first < earliest) earliest = first
    }
  }
  return earliest
}

/** The same of some of them. */
export function findFirstMsOf({ chunks }: DeviceColumns, numbers: Uint32Array): number {
  let earliest = Number.POSITIVE_INFINITY
  for (const number of numbers) {
    const first = chunks[Math.floor(number / chunkDevices)]?.firstMs[number % chunkDevices] ?? 0
    if (first !== 0 && first < earliest) earliest = first
  }
  return earliest
}

function createChunk(capacity: number): Chunk {
  return {
    count: 0,
    firstMs: new Float64Array(capacity),
    lastMs: new Float64Array(capacity),
    state: new Uint32Array(capacity),
    release: new Uint16Array(capacity),
  }
}

function growChunk(chunk: Chunk, needed: number): void {
  const capacity = Math.min(chunkDevices, 2 ** Math.ceil(Math.log2(needed)))
  const larger = createChunk(capacity)
  larger.firstMs.set(chunk.firstMs)
  larger.lastMs.set(chunk.lastMs)
  larger.state.set(chunk.state)
  larger.release.set(chunk.release)
  Object.assign(chunk, { ...larger, count: chunk.count })
}

/** The first devices of the chunk: their number, then column after column. */
export function encodeChunk({ count, firstMs, lastMs, state, release }: Chunk): Buffer {
  const header = Buffer.alloc(headerBytes)
  header.writeUInt32LE(count)
  const columns = [firstMs, lastMs, state, release].map((column) =>
    Buffer.from(column.buffer, 0, count * column.BYTES_PER_ELEMENT),
  )
  return Buffer.concat([header, ...columns])
}

export function decodeChunk(bytes: Uint8Array, columns: DeviceColumns, index: number): void {
  const buffer = copyBytes(bytes)
  const [count = 0] = new Uint32Array(buffer, 0, 1)
  if (count === 0) return
  const chunk = columns.chunkOf(index * chunkDevices + count - 1)
  let at = headerBytes
  for (const column of [chunk.firstMs, chunk.lastMs]) {
    column.set(new Float64Array(buffer, at, count))
    at += count * 8
  }
  chunk.state.set(new Uint32Array(buffer, at, count))
  chunk.release.set(new Uint16Array(buffer, at + count * 4, count))
}

/** What the columns hold of the given devices now. */
export function encodeChanges(columns: DeviceColumns, numbers: Uint32Array): Buffer {
  const count = numbers.length
  const first = new Float64Array(count)
  const last = new Float64Array(count)
  const state = new Uint32Array(count)
  const release = new Uint16Array(count)
  for (let index = 0; index < count; index += 1) {
    const number = numbers[index] ?? 0
    const chunk = columns.chunkOf(number)
    const at = number % chunkDevices
    first[index] = chunk.firstMs[at] ?? 0
    last[index] = chunk.lastMs[at] ?? 0
    state[index] = chunk.state[at] ?? 0
    release[index] = chunk.release[at] ?? 0
  }
  const header = Buffer.alloc(headerBytes)
  header.writeUInt32LE(count)
  return Buffer.concat([header, ...[first, last, numbers, state, release].map(viewBytes)])
}

/** Leaves out the devices of chunks that were written after these changes. */
export function applyChanges(bytes: Uint8Array, columns: DeviceColumns, isNewer: (chunk: number) => boolean): void {
  const buffer = copyBytes(bytes)
  const [count = 0] = new Uint32Array(buffer, 0, 1)
  const first = new Float64Array(buffer, headerBytes, count)
  const last = new Float64Array(buffer, headerBytes + count * 8, count)
  const numbers = new Uint32Array(buffer, headerBytes + count * 16, count)
  const state = new Uint32Array(buffer, headerBytes + count * 20, count)
  const release = new Uint16Array(buffer, headerBytes + count * 24, count)
  for (let index = 0; index < count; index += 1) {
    const number = numbers[index] ?? 0
    if (!isNewer(Math.floor(number / chunkDevices))) continue
    const chunk = columns.chunkOf(number)
    const at = number % chunkDevices
    chunk.firstMs[at] = first[index] ?? 0
    chunk.lastMs[at] = last[index] ?? 0
    chunk.state[at] = state[index] ?? 0
    chunk.release[at] = release[index] ?? 0
  }
}

function viewBytes(column: { buffer: ArrayBufferLike; byteOffset: number; byteLength: number }): Buffer {
  return Buffer.from(column.buffer, column.byteOffset, column.byteLength)
}

/** Columns must begin at multiples of their width, which the bytes of an answer need not. */
function copyBytes(bytes: Uint8Array): ArrayBuffer {
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer
}
