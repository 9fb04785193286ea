import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { readAndroidApp } from '../../../src/analyzer/android/read-android-app.ts'
import { createArchive, readFixtureFiles } from '../memory-archive.ts'

async function readIcon(name: string, change = (_files: Map<string, Buffer>) => {}) {
  const files = await readFixtureFiles(`android/${name}`)
  change(files)
  const { icon } = await readAndroidApp(createArchive(files), name.endsWith('.aab') ? 'aab' : 'apk')
  if (icon === undefined) return undefined
  const { data, info } = await sharp(icon).ensureAlpha().raw().toBuffer({ resolveWithObject: true })
  const at = (x: number, y: number) => [...data.subarray((y * info.width + x) * 4).subarray(0, 4)]
  return { widthPx: info.width, heightPx: info.height, at }
}

const [white, green, blue] = [
  [255, 255, 255, 255],
  [0, 255, 0, 255],
  [0, 0, 255, 255],
]

describe('the icon of an Android app', () => {
  it('is the image of the highest density, not the drawing that there is besides', async () => {
    const icon = await readIcon('plain.apk')
    expect([icon?.widthPx, icon?.at(0, 0)]).toEqual([12, blue])
  })

  it('is the next image when the best is broken', async () => {
    const icon = await readIcon('plain.apk', (files) => {
      const name = 'res/mipmap-xxhdpi-v4/ic_launcher.png'
      files.set(name, files.get(name)?.subarray(0, 50) ?? Buffer.alloc(0))
    })
    expect([icon?.widthPx, icon?.at(0, 0)]).toEqual([6, green])
  })

  it('is not looked for by its name', async () => {
    expect((await readIcon('shortened.apk'))?.at(0, 0)).toEqual(blue)
  })

  it('may be WebP, lie behind references, or be the round one', async () => {
    expect((await readIcon('locales.apk'))?.at(0, 0)).toEqual([255, 128, 0, 255])
    expect((await readIcon('chain.apk'))?.at(0, 0)).toEqual([255, 255, 0, 255])
    expect((await readIcon('round.apk'))?.at(0, 0)).toEqual(green)
  })

  it('is put together of an image with a margin on a color, of which the middle is seen', async () => {
    const icon = await readIcon('adaptive.apk')
    expect(icon?.widthPx).toBe(288)
    // 27 of 108 dp are 108 px, of which 72 are cut off.
    expect([icon?.at(30, 30), icon?.at(42, 42)]).toEqual([
      [0x20, 0x40, 0x60, 255],
      [255, 255, 0, 255],
    ])
  })

  it.each(['vector.apk', 'vector.aab'])('is drawn of its paths: %s', async (name) => {
    const icon = await readIcon(name)
    expect([icon?.widthPx, icon?.heightPx]).toEqual([288, 144])
    expect(icon?.at(10, 10)).toEqual(green)
    expect(icon?.at(72, 72)).toEqual(white)
    // Turned by 90 degrees, the upper half is the right one.
    expect(icon?.at(230, 72)).toEqual([255, 127, 127, 255])
    expect(icon?.at(200, 72)).toEqual(white)
    expect(icon?.at(270, 72)).toEqual([127, 127, 255, 255])
  })

  it.each(['gradients.apk', 'gradients.aab'])('has its gradients: %s', async (name) => {
    const icon = await readIcon(name)
    expect(icon?.at(10, 10)).toEqual(green)
    const dark = icon?.at(142, 10) ?? []
    expect(dark[1]).toBeLessThan(10)
    const center = icon?.at(216, 72) ?? []
    expect(Math.min(...center)).toBeGreaterThan(245)
    // One that goes around has the mean of its colors.
    expect(icon?.at(10, 200)).toEqual([128, 0, 128, 255])
    const [left, right] = [icon?.at(150, 280) ?? [], icon?.at(280, 280) ?? []]
    expect(left[0]).toBeGreaterThan(right[0] ?? 255)
  })

  it.each(['layers.apk', 'layers.aab'])('has its layers, one above the other: %s', async (name) => {
    const icon = await readIcon(name)
    expect([icon?.at(10, 10), icon?.at(270, 10), icon?.at(10, 280)]).toEqual([[255, 0x44, 0x44, 255], white, blue])
    const [red, ...rest] = icon?.at(180, 100) ?? []
    expect(Math.abs((red ?? 0) - 127)).toBeLessThan(2)
    expect(rest).toEqual([red, red, 255])
  })

  it('is none when it contains itself', async () => {
    expect(await readIcon('cycle.apk')).toBeUndefined()
  })

  it('is none when a part of it is not there', async () => {
    const icon = await readIcon('adaptive.apk', (files) => {
      files.delete('res/drawable-nodpi-v4/image.png')
    })
    expect(icon).toBeUndefined()
  })
})
