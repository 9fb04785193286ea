import { type ByteReader, createByteReader } from '../byte-reader.ts'
import { limits } from '../limits.ts'
import { readOptional } from '../optional.ts'

/** As much of a PNG as has its size in it. */
export const pngHeaderBytes = 64

export type PngHeader = {
  widthPx: number
  heightPx: number
  /** Of the kind that Xcode makes of the PNGs in an app, which no decoder of PNGs reads. */
  isCgbi: boolean
  /** Where the chunk with its size begins. */
  place: number
}

const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
const cgbiChunkBytes = 16

/** undefined: it is no PNG, or larger than an icon may be. */
export function readPngHeader(start: Buffer): PngHeader | undefined {
  return readOptional(() => {
    const reader = createByteReader(start, 'big')
    if (!reader.slice(0, signature.length).equals(signature)) return undefined
    const isCgbi = readChunkType(reader, signature.length) === 'CgBI'
    const place = signature.length + (isCgbi ? cgbiChunkBytes : 0)
    if (readChunkType(reader, place) !== 'IHDR') return undefined
    const [widthPx, heightPx] = [reader.uint32(place + 8), reader.uint32(place + 12)]
    return isSize(widthPx) && isSize(heightPx) ? { widthPx, heightPx, isCgbi, place } : undefined
  })
}

export function readChunkType(reader: ByteReader, place: number): string {
  return reader.slice(place + 4, 4).toString('latin1')
}

function isSize(px: number): boolean {
  return px > 0 && px <= limits.iconPx
}
