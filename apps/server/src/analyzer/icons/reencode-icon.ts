import sharp, { type Sharp } from 'sharp'
import { limits } from '../limits.ts'

sharp.cache(false)
sharp.concurrency(1)

/** Nothing larger is decoded, and no image of which a part is broken. */
export const sharpOptions = { limitInputPixels: limits.iconPx ** 2, failOn: 'error' } as const

/**
 * The image as a PNG of our own making, without metadata; undefined when it cannot be decoded. Only PNG, JPEG and WebP reach
 * a decoder.
 */
export async function reencodeIcon(bytes: Buffer): Promise<Buffer | undefined> {
  const image = await openImage(bytes)
  return image === undefined ? undefined : encode(image)
}

/** An image that is within the limits, not decoded yet. */
export async function openImage(bytes: Buffer): Promise<Sharp | undefined> {
  const format = detectFormat(bytes)
  if (format === undefined || bytes.length > limits.iconBytes) return undefined
  try {
    const image = sharp(bytes, sharpOptions)
    const found = await image.metadata()
    const isWithin = found.width <= limits.iconPx && found.height <= limits.iconPx
    return found.format === format && isWithin ? image : undefined
  } catch {
    return undefined
  }
}

/** RGBA, 8 bits each and not premultiplied, as a PNG. */
export async function encodeRgba(pixels: Buffer, widthPx: number, heightPx: number): Promise<Buffer | undefined> {
  const isSize = (px: number) => Number.isInteger(px) && px > 0 && px <= limits.iconPx
  if (!isSize(widthPx) || !isSize(heightPx) || pixels.length !== widthPx * heightPx * 4) return undefined
  return encode(sharp(pixels, { ...sharpOptions, raw: { width: widthPx, height: heightPx, channels: 4 } }))
}

/** No larger than anybody shows it: at 2048 px one of noise takes 12 MB. undefined when its pixels are broken. */
export async function encode(image: Sharp): Promise<Buffer | undefined> {
  try {
    const size = {
      width: limits.shownIconPx,
      height: limits.shownIconPx,
      fit: 'inside',
      withoutEnlargement: true,
    } as const
    return await image.resize(size).png().toBuffer()
  } catch {
    return undefined
  }
}

const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const jpeg = Buffer.from([0xff, 0xd8, 0xff])

/** Whether a file that begins so may be an image that is read here. 30 bytes are enough. */
export function isImage(start: Buffer): boolean {
  return detectFormat(start) !== undefined
}

function detectFormat(bytes: Buffer): 'png' | 'jpeg' | 'webp' | undefined {
  if (bytes.subarray(0, png.length).equals(png)) return 'png'
  if (bytes.subarray(0, jpeg.length).equals(jpeg)) return 'jpeg'
  return isWebp(bytes) ? 'webp' : undefined
}

/** With the signature of its first chunk: without that the text of another format could follow. */
function isWebp(bytes: Buffer): boolean {
  if (bytes.length < 30 || bytes.toString('latin1', 0, 4) !== 'RIFF') return false
  switch (bytes.toString('latin1', 8, 16)) {
    case 'WEBPVP8 ':
      return bytes.readUIntBE(23, 3) === 0x9d012a
    case 'WEBPVP8L':
      return bytes[20] === 0x2f
    case 'WEBPVP8X':
      return bytes.readUInt32LE(16) === 10
    default:
      return false
  }
}
