import { deflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { UnanalyzableError } from '../../../src/analyzer/app-facts.ts'
import { findAppleApp } from '../../../src/analyzer/apple/find-apple-app.ts'
import { readAppleApp } from '../../../src/analyzer/apple/read-apple-app.ts'
import { buildMach, machTypes } from '../executables/build-executables.ts'
import { mutate } from '../executables/mutate.ts'
import { expectQuick } from '../expect-quick.ts'
import { createArchive, createFiles, type Files, readFixtureFiles } from '../memory-archive.ts'
import { buildCgbi, buildHeader, buildIcns, buildPng, fill } from './build-images.ts'
import { buildXmlPlist, iosFields, macosFields } from './build-plists.ts'

/** What becomes of an app: its facts, or why there are none. It must be known soon. */
async function judge(files: Files) {
  const archive = createArchive(files)
  const app = findAppleApp(archive.entries.keys())
  if (app === undefined) return 'unknown_format'
  return expectQuick(() =>
    readAppleApp(archive, app).catch((error: unknown) => {
      if (error instanceof UnanalyzableError) return error.problem
      throw error
    }),
  )
}

const macFiles = createFiles({
  'Atlas.app/Contents/Info.plist': buildXmlPlist(macosFields),
  'Atlas.app/Contents/MacOS/Atlas': buildMach({ type: machTypes.arm64 }),
  'Atlas.app/Contents/Resources/AppIcon.icns': buildIcns([
    ['ic07', buildPng(fill(16, [9, 9, 9, 255]))],
    ['ic08', buildPng(fill(32, [9, 9, 9, 255]))],
  ]),
})

describe('damaged apps', () => {
  it('have facts or a problem, whichever of their files is damaged', async () => {
    const apps = [await readFixtureFiles('real/ios-xcarchive.zip'), macFiles]
    const damaged = fc.constantFrom(...apps).chain((files) => {
      const wanted = [...files].filter(([name]) => /\.app\/[^/]*$|Contents/.test(name))
      return fc
        .constantFrom(...wanted)
        .chain(([name, bytes]) => mutate(bytes).map((other) => new Map(files).set(name, other)))
    })
    await fc.assert(
      fc.asyncProperty(damaged, async (files) => {
        await judge(files)
      }),
      { numRuns: 250 },
    )
  })
})

describe('hostile apps', () => {
  const info = buildXmlPlist({ ...iosFields, CFBundleIconFiles: ['Face'] })
  const size = buildHeader({ widthPx: 2048, heightPx: 2048 })
  const bomb = buildCgbi({
    ...fill(1, [0, 0, 0, 0]),
    header: size,
    data: deflateRawSync(Buffer.alloc(100 * 1024 ** 2), { level: 1 }),
  })
  const lying = buildCgbi({ ...fill(1, [0, 0, 0, 0]), header: size })
  /** All of its pixels are there, and the last row is of an unknown filter. */
  const rows = Buffer.alloc(2048 * (1 + 2048 * 4), 4)
  rows[rows.length - 1 - 2048 * 4] = 9
  const spoiled = buildCgbi({ ...fill(1, [0, 0, 0, 0]), header: size, data: deflateRawSync(rows) })

  it.each([
    ['100 MB in 100 kB', bomb],
    ['a size that lies', lying],
    ['a last row that is broken', spoiled],
  ])('keep their facts when all icons are bad: %s', async (_, image) => {
    const icons = Array.from({ length: 40 }, (_none, index) => [`Runner.app/Face@${index}x.png`, image] as const)
    const outcome = await judge(new Map([['Runner.app/Info.plist', info], ...icons]))
    expect(outcome).toMatchObject({ packageName: 'com.example.atlas' })
    expect(outcome).not.toHaveProperty('icon')
  })

  it('may have 200,000 images and as many names for icons', async () => {
    const names = Array.from({ length: 9000 }, (_, index) => `${index}`)
    const plist = buildXmlPlist({ ...iosFields, CFBundleIconFiles: names })
    const files: Files = new Map([['Runner.app/Info.plist', plist]])
    const image = buildPng(fill(1, [0, 0, 0, 0])).subarray(0, 40)
    for (let index = 0; index < 200_000; index += 1) files.set(`Runner.app/${index}@2x.png`, image)
    expect(await judge(files)).toMatchObject({ packageName: 'com.example.atlas' })
  })

  it('are told apart soon, however long their names are', async () => {
    const long = 'a/'.repeat(30_000)
    const names = [
      `${long}.app/Info.plist`,
      `${'.app'.repeat(15_000)}/Info.plis`,
      `${'a'.repeat(60_000)}.app/Info.plist/`,
    ]
    const many = Array.from({ length: 300 }, () => names).flat()
    expect(await expectQuick(() => findAppleApp(many))).toBeUndefined()
  })

  it('are refused with a property list of more than a megabyte', async () => {
    expect(await judge(createFiles({ 'Runner.app/Info.plist': Buffer.alloc(1024 ** 2 + 1) }))).toBe('limit_exceeded')
  })
})
