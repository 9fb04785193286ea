import { crc32, deflateSync } from 'node:zlib'
import fc from 'fast-check'
import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { encodeRgba, reencodeIcon } from '../../../src/analyzer/icons/reencode-icon.ts'

const create = (px: number) => sharp({ create: { width: px, height: px, channels: 4, background: '#ff8000' } })

describe('reencodeIcon', () => {
  it.each(['png', 'jpeg', 'webp'] as const)('makes a PNG without metadata of %s', async (format) => {
    const bytes = await create(8)
      .withExif({ IFD0: { Copyright: 'secret-copyright' } })
      .toFormat(format)
      .toBuffer()
    const icon = (await reencodeIcon(bytes)) ?? Buffer.alloc(0)
    const { format: found, width, exif } = await sharp(icon).metadata()
    expect({ found, width, exif }).toEqual({ found: 'png', width: 8, exif: undefined })
    expect(icon.includes('secret-copyright')).toBe(false)
  })

  it('takes no other format', async () => {
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>')
    const disguised = Buffer.concat([Buffer.from('RIFF....WEBPVP8X\x0a\0\0\0'), svg])
    for (const bytes of [svg, disguised, await create(8).gif().toBuffer(), await create(8).tiff().toBuffer()]) {
      expect(await reencodeIcon(bytes)).toBeUndefined()
    }
  })

  it('decodes no image that is too large', async () => {
    expect(await reencodeIcon(await create(2048).png().toBuffer())).toBeDefined()
    expect(await reencodeIcon(await create(2049).png().toBuffer())).toBeUndefined()
    const huge = createPng(30_000, 30_000)
    const startMs = performance.now()
    expect(await reencodeIcon(huge)).toBeUndefined()
    expect(performance.now() - startMs).toBeLessThan(500)
    const padded = Buffer.concat([await create(8).png().toBuffer(), Buffer.alloc(5 * 1024 ** 2)])
    expect(await reencodeIcon(padded)).toBeUndefined()
  })

  it('answers for broken images', async () => {
    const whole = await create(16).png().toBuffer()
    for (let length = 0; length < whole.length; length += 7) await reencodeIcon(whole.subarray(0, length))
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.nat(255), async (at, byte) => {
        const broken = Buffer.from(whole)
        broken[at] = byte
        await reencodeIcon(broken)
      }),
      { numRuns: 50 },
    )
  })
})

/** Says that it has these many pixels, and has none. */
function createPng(widthPx: number, heightPx: number): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(data.length)
    const checksum = Buffer.alloc(4)
    checksum.writeUInt32BE(crc32(Buffer.concat([Buffer.from(type), data])))
    return Buffer.concat([length, Buffer.from(type), data, checksum])
  }
  const header = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 6, 0, 0, 0])
  header.writeUInt32BE(widthPx)
  header.writeUInt32BE(heightPx, 4)
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  const parts = [chunk('IHDR', header), chunk('IDAT', deflateSync(Buffer.alloc(1000))), chunk('IEND', Buffer.alloc(0))]
  return Buffer.concat([signature, ...parts])
}

describe('encodeRgba', () => {
  it('makes a PNG of pixels as they are', async () => {
    const pixels = Buffer.from([255, 0, 0, 255, 240, 200, 30, 128])
    const icon = await encodeRgba(pixels, 2, 1)
    expect(await sharp(icon).raw().toBuffer()).toEqual(pixels)
  })

  it('takes only as many pixels as there are', async () => {
    expect(await encodeRgba(Buffer.alloc(16), 2, 1)).toBeUndefined()
    expect(await encodeRgba(Buffer.alloc(0), 0, 0)).toBeUndefined()
    expect(await encodeRgba(Buffer.alloc(16), 0.5, 8)).toBeUndefined()
  })
})
