import { deflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeCgbi } from '../../../src/analyzer/icons/decode-cgbi.ts'
import {
  buildCgbi,
  buildHeader,
  buildPng,
  decodePixels,
  fill,
  type ImageInput,
  type Rgba,
} from '../apple/build-images.ts'
import { mutate } from '../executables/mutate.ts'
import { expectQuick } from '../expect-quick.ts'

/** Of these alphas 255 is a multiple, so that colours survive to be multiplied and divided by them. */
const alphas = [255, 51, 85, 17]

const colourAt = (x: number, y: number): Rgba => {
  const alpha = alphas[(x + y) % alphas.length] ?? 255
  const step = 255 / alpha
  const quantize = (value: number) => Math.floor((value % 256) / step) * step
  return [quantize(x * 37), quantize(y * 59 + x), quantize(x * y), alpha]
}

const opaqueAt = (x: number, y: number): Rgba => [(x * 11) % 256, (y * 23) % 256, (x * y) % 256, 255]

describe('decodeCgbi', () => {
  it.each<[string, Partial<ImageInput>]>([
    ['without filters', {}],
    ['with every filter', { filters: [0, 1, 2, 3, 4, 4, 3, 1] }],
    ['interlaced', { isInterlaced: true, filters: [4, 2, 1, 3, 0] }],
    ['interlaced, smaller than the steps', { widthPx: 3, heightPx: 2, isInterlaced: true }],
    ['interlaced, of one pixel', { widthPx: 1, heightPx: 1, isInterlaced: true }],
    ['without alpha', { channels: 3, colourAt: opaqueAt, filters: [4, 3, 2, 1] }],
  ])('gives the pixels of the same image as a plain PNG: %s', async (_, changes) => {
    const input: ImageInput = { widthPx: 37, heightPx: 29, colourAt, ...changes }
    const { pixels, widthPx, heightPx } = await decodePixels(buildPng(input))
    const decoded = decodeCgbi(buildCgbi(input))
    expect(decoded).toMatchObject({ widthPx, heightPx })
    expect(decoded?.pixels.equals(pixels)).toBe(true)
  })

  it('divides colours by alpha, as far as what was rounded allows', () => {
    const decoded = decodeCgbi(buildCgbi(fill(1, [240, 200, 30, 128])))
    expect([...(decoded?.pixels ?? [])]).toEqual([239, 199, 30, 128])
    const clear = decodeCgbi(buildCgbi(fill(1, [240, 200, 30, 0])))
    expect([...(clear?.pixels ?? [])]).toEqual([0, 0, 0, 0])
  })

  it('takes no colour for more than all of it', () => {
    const data = deflateRawSync(Buffer.from([0, 200, 10, 200, 20]))
    expect([...(decodeCgbi(buildCgbi({ ...fill(1, [0, 0, 0, 0]), data }))?.pixels ?? [])]).toEqual([255, 128, 255, 20])
  })

  it.each([
    ['a plain PNG', buildPng(fill(4, [1, 2, 3, 255]))],
    [
      'a size that lies',
      buildCgbi({ ...fill(4, [1, 2, 3, 4]), header: buildHeader({ widthPx: 2000, heightPx: 2000 }) }),
    ],
    ['a size of nothing', buildCgbi({ ...fill(4, [1, 2, 3, 4]), header: buildHeader({ widthPx: 0, heightPx: 4 }) })],
    [
      '2^31 pixels a side',
      buildCgbi({ ...fill(4, [1, 2, 3, 4]), header: buildHeader(fill(0x7fffffff, [0, 0, 0, 0])) }),
    ],
    ['an unknown filter', buildCgbi({ ...fill(1, [0, 0, 0, 0]), data: deflateRawSync(Buffer.from([5, 0, 0, 0, 0])) })],
    ['bytes that cannot be inflated', buildCgbi({ ...fill(1, [0, 0, 0, 0]), data: Buffer.alloc(40, 0xff) })],
    ['too few bytes', buildCgbi({ ...fill(2, [0, 0, 0, 0]), data: deflateRawSync(Buffer.alloc(17)) })],
    ['no end', buildCgbi(fill(4, [1, 2, 3, 4])).subarray(0, -12)],
  ])('has nothing of %s', (_, bytes) => {
    expect(decodeCgbi(bytes)).toBeUndefined()
  })

  it('stops at the first byte too many of 100 MB', async () => {
    const bytes = buildCgbi({
      ...fill(16, [0, 0, 0, 0]),
      data: deflateRawSync(Buffer.alloc(100 * 1024 ** 2), { level: 1 }),
    })
    expect(await expectQuick(() => decodeCgbi(bytes))).toBeUndefined()
  })

  it('is no fault of ours when the image is damaged', () => {
    const image = buildCgbi({ widthPx: 12, heightPx: 9, colourAt, isInterlaced: true, filters: [4, 1] })
    fc.assert(
      fc.property(mutate(image), (damaged) => {
        decodeCgbi(damaged)
      }),
      { numRuns: 2000 },
    )
  })
})
