import { inflateRawSync } from 'node:zlib'
import { type ByteReader, createByteReader } from '../byte-reader.ts'
import { readOptional } from '../optional.ts'
import { readChunkType, readPngHeader } from './read-png-header.ts'
import { unfilterPasses } from './unfilter-png.ts'

/** RGBA, 8 bits each and not premultiplied. */
export type Pixels = { pixels: Buffer; widthPx: number; heightPx: number }

/** Colours with and without alpha, by the number that the header has for them. */
const channelsOfType: Record<number, 3 | 4> = { 2: 3, 6: 4 }

/**
 * The pixels of a PNG as Xcode packs it into an app: compressed without the frame of zlib, blue before red, and multiplied by
 * alpha. undefined when it is none, or is broken.
 */
export function decodeCgbi(bytes: Buffer): Pixels | undefined {
  return readOptional(() => {
    const header = readPngHeader(bytes)
    if (header === undefined || !header.isCgbi) return undefined
    const { widthPx, heightPx, place } = header
    const reader = createByteReader(bytes, 'big')
    const [depth, type, interlacing] = [reader.uint8(place + 16), reader.uint8(place + 17), reader.uint8(place + 20)]
    const channels = channelsOfType[type]
    if (depth !== 8 || channels === undefined || interlacing > 1) return undefined
    const image = { widthPx, heightPx, channels, isInterlaced: interlacing === 1 }
    const samples = unfilterPasses(image, (sizeBytes) => inflate(readData(reader, place), sizeBytes))
    return samples && { pixels: toRgba(samples, channels), widthPx, heightPx }
  })
}

/** All data chunks from the header on; every step is at least the 12 bytes of an empty chunk. */
function readData(reader: ByteReader, header: number): Buffer {
  const parts: Buffer[] = []
  let place = header
  for (;;) {
    const length = reader.uint32(place)
    const type = readChunkType(reader, place)
    if (type === 'IEND') return Buffer.concat(parts)
    if (type === 'IDAT') parts.push(reader.slice(place + 8, length))
    place += 12 + length
  }
}

/** Stops at the first byte too many: a few kilobytes may stand for gigabytes. */
function inflate(data: Buffer, sizeBytes: number): Buffer | undefined {
  try {
    const inflated = inflateRawSync(data, { maxOutputLength: sizeBytes })
    return inflated.length === sizeBytes ? inflated : undefined
  } catch {
    return undefined
  }
}

function toRgba(samples: Buffer, channels: 3 | 4): Buffer {
  const pixels = Buffer.alloc((samples.length / channels) * 4)
  for (let from = 0, to = 0; to < pixels.length; from += channels, to += 4) {
    const alpha = channels === 4 ? (samples[from + 3] ?? 0) : 255
    for (let channel = 0; channel < 3; channel += 1) {
      pixels[to + channel] = unmultiply(samples[from + 2 - channel] ?? 0, alpha)
    }
    pixels[to + 3] = alpha
  }
  return pixels
}

function unmultiply(value: number, alpha: number): number {
  if (alpha === 255) return value
  return alpha === 0 ? 0 : Math.min(255, Math.round((value * 255) / alpha))
}
