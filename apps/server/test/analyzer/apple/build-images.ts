import { crc32, deflateRawSync, deflateSync } from 'node:zlib'
import sharp from 'sharp'

export type Rgba = [red: number, green: number, blue: number, alpha: number]

export type ImageInput = {
  widthPx: number
  heightPx: number
  colourAt: (x: number, y: number) => Rgba
  isInterlaced?: boolean
  /** Of each row, in turn. */
  filters?: number[]
  channels?: 3 | 4
}

/** Adam7: column, row, step of columns, step of rows. */
const interlaced = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const

/** A PNG as every decoder reads it. */
export function buildPng(input: ImageInput): Buffer {
  return join([buildHeader(input), buildChunk('IDAT', deflateSync(filterRows(input, (colour) => colour)))])
}

/** The same image as Xcode packs it: multiplied by alpha, blue first, and no frame around the compressed bytes. */
export function buildCgbi(input: ImageInput & { data?: Buffer; header?: Buffer }): Buffer {
  const multiply = ([red, green, blue, alpha]: Rgba): Rgba => {
    const [first, second, third] = [blue, green, red].map((value) => Math.round((value * alpha) / 255))
    return [first ?? 0, second ?? 0, third ?? 0, alpha]
  }
  const data = input.data ?? deflateRawSync(filterRows(input, multiply))
  const mark = buildChunk('CgBI', Buffer.from('50002006', 'hex'))
  // In two pieces, as of a large image.
  const pieces = [data.subarray(0, 20), data.subarray(20)].map((piece) => buildChunk('IDAT', piece))
  return join([mark, input.header ?? buildHeader(input), ...pieces])
}

export function buildHeader({ widthPx, heightPx, isInterlaced = false, channels = 4 }: Omit<ImageInput, 'colourAt'>) {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(widthPx, 0)
  header.writeUInt32BE(heightPx, 4)
  header.writeUInt8(8, 8)
  header.writeUInt8(channels === 4 ? 6 : 2, 9)
  header.writeUInt8(isInterlaced ? 1 : 0, 12)
  return buildChunk('IHDR', header)
}

export function buildChunk(type: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), content])
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(content.length)
  check.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, check])
}

function join(chunks: Buffer[]): Buffer {
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), ...chunks, buildChunk('IEND', Buffer.alloc(0))])
}

function filterRows(input: ImageInput, convert: (colour: Rgba) => Rgba): Buffer {
  const { widthPx, heightPx, colourAt, isInterlaced = false, filters = [0], channels = 4 } = input
  const rows: Buffer[] = []
  for (const [column, row, columnStep, rowStep] of isInterlaced ? interlaced : ([[0, 0, 1, 1]] as const)) {
    let above: number[] = []
    for (let y = row; y < heightPx && column < widthPx; y += rowStep) {
      const line: number[] = []
      for (let x = column; x < widthPx; x += columnStep) line.push(...convert(colourAt(x, y)).slice(0, channels))
      const filter = filters[rows.length % filters.length] ?? 0
      const filtered = line.map((value, index) => {
        const left = line[index - channels] ?? 0
        const up = above[index] ?? 0
        const corner = index < channels ? 0 : (above[index - channels] ?? 0)
        return (value - guess(filter, left, up, corner)) & 255
      })
      rows.push(Buffer.from([filter, ...filtered]))
      above = line
    }
  }
  return Buffer.concat(rows)
}

function guess(filter: number, left: number, up: number, corner: number): number {
  if (filter === 4) {
    const [value] = [left, up, corner].toSorted(
      (a, b) => Math.abs(left + up - corner - a) - Math.abs(left + up - corner - b),
    )
    return value ?? 0
  }
  return [0, left, up, Math.floor((left + up) / 2)][filter] ?? 0
}

export async function decodePixels(icon: Buffer | undefined) {
  const { data, info } = await sharp(icon).ensureAlpha().raw().toBuffer({ resolveWithObject: true })
  return { pixels: data, widthPx: info.width, heightPx: info.height }
}

/** One colour all over, in a size. */
export function fill(px: number, colour: Rgba, heightPx = px): ImageInput {
  return { widthPx: px, heightPx, colourAt: () => colour }
}

/** Blocks of a type and of bytes, as an icon of macOS has them. */
export function buildIcns(blocks: [type: string, bytes: Buffer][]): Buffer {
  const buildBlock = (type: string, bytes: Buffer) => {
    const head = Buffer.from(`${type}\0\0\0\0`, 'latin1')
    head.writeUInt32BE(8 + bytes.length, 4)
    return Buffer.concat([head, bytes])
  }
  return buildBlock('icns', Buffer.concat(blocks.map(([type, bytes]) => buildBlock(type, bytes))))
}
