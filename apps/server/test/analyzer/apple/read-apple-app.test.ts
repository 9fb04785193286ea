import { describe, expect, it } from 'vitest'
import { findAppleApp, findXcframework } from '../../../src/analyzer/apple/find-apple-app.ts'
import { readAppleApp } from '../../../src/analyzer/apple/read-apple-app.ts'
import { readXcframework } from '../../../src/analyzer/apple/read-xcframework.ts'
import { buildFat, buildMach, machTypes } from '../executables/build-executables.ts'
import { createArchive, createFiles, readFixtureFiles } from '../memory-archive.ts'
import { buildCgbi, buildIcns, buildPng, decodePixels, fill, type Rgba } from './build-images.ts'
import { buildBinaryPlist, buildXmlPlist, type Fields, iosFields, macosFields, omit } from './build-plists.ts'

const red: Rgba = [255, 0, 0, 255]
const blue: Rgba = [0, 0, 255, 255]
const arm64 = buildMach({ type: machTypes.arm64 })

async function analyze(files: Record<string, Buffer | string>) {
  const archive = createArchive(createFiles(files))
  const app = findAppleApp(archive.entries.keys())
  if (app === undefined) throw new Error('no app was found')
  return readAppleApp(archive, app)
}

const analyzeIos = (fields: Fields, files: Record<string, Buffer | string> = {}) => {
  const inApp = Object.entries(files).map(([name, content]) => [`Payload/Runner.app/${name}`, content])
  return analyze({ 'Payload/Runner.app/Info.plist': buildXmlPlist(fields), ...Object.fromEntries(inApp) })
}

/** The size and the first pixel of an icon. */
async function describeIcon(icon: Buffer | undefined) {
  const { pixels, widthPx, heightPx } = await decodePixels(icon)
  return { widthPx, heightPx, colour: [...pixels.subarray(0, 4)] }
}

describe('readAppleApp for iOS', () => {
  it('reads an archive of Xcode with all its decoys', async () => {
    const archive = createArchive(await readFixtureFiles('real/ios-xcarchive.zip'))
    const app = findAppleApp(archive.entries.keys())
    expect(app).toEqual({ root: 'Runner.xcarchive/Products/Applications/Runner.app', kind: 'ios' })
    if (app === undefined) return
    const { icon, ...facts } = await readAppleApp(archive, app)
    expect(facts).toEqual({
      displayName: 'Atlas iOS',
      packageName: 'com.example.atlasIos',
      minSdkVersion: '13.0',
      targetSdkVersion: '17.4',
      architectures: ['arm64'],
    })
    expect(await decodePixels(icon)).toMatchObject({ widthPx: 180, heightPx: 180 })
  })

  it.each([
    ['XML', buildXmlPlist],
    ['binary', buildBinaryPlist],
  ])('reads a property list: %s', async (_, build) => {
    const facts = await analyze({ 'Runner.app/Info.plist': build(iosFields), 'Runner.app/Runner': arm64 })
    expect(facts).toEqual({
      displayName: 'Atlas Notes',
      packageName: 'com.example.atlas',
      minSdkVersion: '13.0',
      targetSdkVersion: '17.4',
      architectures: ['arm64'],
    })
  })

  it('names an app without a name by what is next to one', async () => {
    const nameOf = async (fields: Fields) => (await analyzeIos(fields)).displayName
    expect(await nameOf(omit(iosFields, 'CFBundleDisplayName'))).toBe('Runner')
    expect(await nameOf({ ...iosFields, CFBundleDisplayName: '' })).toBe('Runner')
    expect(await nameOf({ ...iosFields, CFBundleDisplayName: '\u202e \u200f' })).toBe('Runner')
    expect(await nameOf(omit(iosFields, 'CFBundleDisplayName', 'CFBundleName'))).toBe('com.example.atlas')
    expect(await nameOf({ ...iosFields, CFBundleDisplayName: `a\u202eb${'x'.repeat(9999)}` })).toHaveLength(256)
  })

  it('takes the version it was built for from the SDK when need be, else the oldest that runs it', async () => {
    const targetOf = async (fields: Fields) => (await analyzeIos(fields)).targetSdkVersion
    expect(await targetOf(omit(iosFields, 'DTPlatformVersion'))).toBe('17.2')
    expect(await targetOf({ ...iosFields, DTPlatformVersion: '' })).toBe('17.2')
    expect(await targetOf(omit(iosFields, 'DTPlatformVersion', 'DTSDKName'))).toBe('13.0')
    expect(await targetOf({ ...omit(iosFields, 'DTPlatformVersion'), DTSDKName: 'iphoneos' })).toBe('13.0')
  })

  it.each(['CFBundleIdentifier', 'MinimumOSVersion'])('says that %s is missing', async (field) => {
    const missing = { problem: 'missing_field', message: field }
    await expect(analyzeIos(omit(iosFields, field))).rejects.toMatchObject(missing)
    await expect(analyzeIos({ ...iosFields, [field]: ' ' })).rejects.toMatchObject(missing)
    await expect(analyzeIos({ ...iosFields, [field]: 13 })).rejects.toMatchObject(missing)
    const malformed = { problem: 'malformed_content', message: field }
    await expect(analyzeIos({ ...iosFields, [field]: 'a b' })).rejects.toMatchObject(malformed)
    await expect(analyzeIos({ ...iosFields, [field]: 'x'.repeat(256) })).rejects.toMatchObject(malformed)
  })

  it('knows the architectures of a fat executable, and none without an executable that can be read', async () => {
    const fat = buildFat([{ type: machTypes.arm64 }, { type: machTypes.arm, subtype: 9 }])
    const read = async (executable: Buffer) => (await analyzeIos(iosFields, { Runner: executable })).architectures
    expect(await read(fat)).toEqual(['arm64', 'armv7'])
    expect(await read(buildFat([], { count: 2 ** 32 - 1 }))).toEqual([])
    expect(await read(Buffer.from('#!/bin/sh'))).toEqual([])
    expect((await analyzeIos(iosFields)).architectures).toEqual([])
    expect((await analyzeIos({ ...iosFields, CFBundleExecutable: '../../../etc/passwd' })).architectures).toEqual([])
    expect((await analyzeIos(omit(iosFields, 'CFBundleExecutable'), { Runner: fat })).architectures).toEqual([])
  })
})

describe('the icon of an iOS app', () => {
  const primary = (...names: string[]) => ({ CFBundlePrimaryIcon: { CFBundleIconFiles: names } })

  it('is the largest of those for iPhone and for iPad', async () => {
    const fields = {
      ...iosFields,
      CFBundleIcons: primary('Face60x60'),
      'CFBundleIcons~ipad': primary('Face60x60', 'Face76x76'),
    }
    const { icon } = await analyzeIos(fields, {
      'Face60x60@2x.png': buildCgbi(fill(120, blue)),
      'Face76x76@2x~ipad.png': buildCgbi(fill(152, red)),
      'Face60x60.png': buildPng(fill(60, blue)),
    })
    expect(await describeIcon(icon)).toEqual({ widthPx: 152, heightPx: 152, colour: red })
  })

  it('is one that the property list names, however large others are', async () => {
    const fields = { ...iosFields, CFBundleIconFiles: ['Old.png'] }
    const files = { 'Old@2x.png': buildPng(fill(40, red)), 'AppIcon.png': buildPng(fill(90, blue)) }
    expect(await describeIcon((await analyzeIos(fields, files)).icon)).toMatchObject({ widthPx: 40, colour: red })
    const single = { ...iosFields, CFBundleIconFile: 'Old' }
    expect(await describeIcon((await analyzeIos(single, files)).icon)).toMatchObject({ widthPx: 40, colour: red })
  })

  it('is one with a usual name when the property list names none that is there', async () => {
    const fields = { ...iosFields, CFBundleIcons: primary('Gone') }
    const files = { 'AppIcon60x60@3x.png': buildPng(fill(30, red)), 'IconLarge.png': buildPng(fill(90, blue)) }
    expect(await describeIcon((await analyzeIos(fields, files)).icon)).toMatchObject({ widthPx: 30, colour: red })
    const { 'IconLarge.png': large } = files
    expect(await describeIcon((await analyzeIos(fields, { 'Icon.png': large })).icon)).toMatchObject({ widthPx: 90 })
  })

  it('is none of an extension or of a folder, nor a file of which the name only begins alike', async () => {
    const { icon } = await analyzeIos(
      { ...iosFields, CFBundleIcons: primary('Face') },
      {
        'PlugIns/Share.appex/AppIcon60x60@3x.png': buildPng(fill(9, red)),
        'Assets/Face.png': buildPng(fill(9, red)),
        'FacePaint.png': buildPng(fill(9, red)),
        'Face.gif': buildPng(fill(9, red)),
        'Assets.car': 'BOMStore',
      },
    )
    expect(icon).toBeUndefined()
  })

  it('is the next one when the best is broken, too large, or lies about its size', async () => {
    const fields = { ...iosFields, CFBundleIcons: primary('Face') }
    const { icon } = await analyzeIos(fields, {
      'Face@2x.png': buildPng(fill(16, red)),
      'Face@3x.png': buildCgbi(fill(24, blue)).subarray(0, 90),
      'Face@4x.png': Buffer.concat([buildPng(fill(64, blue)), Buffer.alloc(5 * 1024 ** 2)]),
      'Face~ipad.png': buildPng({ ...fill(3000, blue, 1) }),
      'Face.png': 'no image',
    })
    expect(await describeIcon(icon)).toEqual({ widthPx: 16, heightPx: 16, colour: red })
  })
})

describe('readAppleApp for macOS', () => {
  const analyzeMac = (fields: Fields, files: Record<string, Buffer | string> = {}, root = 'Atlas.app/') => {
    const inApp = Object.entries(files).map(([name, content]) => [`${root}Contents/${name}`, content])
    return analyze({ [`${root}Contents/Info.plist`]: buildXmlPlist(fields), ...Object.fromEntries(inApp) })
  }

  it.each(['Atlas.app/', 'Atlas.xcarchive/Products/Applications/Atlas.app/', ''])(
    'reads an app at "%s"',
    async (root) => {
      const executable = buildFat([{ type: machTypes.x86_64 }, { type: machTypes.arm64 }])
      const icns = buildIcns([
        ['TOC ', Buffer.alloc(16)],
        ['ic07', buildPng(fill(128, blue))],
        ['ic09', buildPng(fill(512, red))],
        ['it32', Buffer.alloc(64)],
        ['ic08', buildPng(fill(256, blue))],
      ])
      const files = { 'MacOS/Atlas': executable, 'Resources/AppIcon.icns': icns }
      const { icon, ...facts } = await analyzeMac(macosFields, files, root)
      expect(facts).toEqual({
        displayName: 'Atlas',
        packageName: 'com.example.atlas.mac',
        minSdkVersion: '10.14',
        targetSdkVersion: '14.2',
        architectures: ['x86_64', 'arm64'],
      })
      expect(await describeIcon(icon)).toEqual({ widthPx: 512, heightPx: 512, colour: red })
    },
  )

  it.each(['CFBundleIdentifier', 'LSMinimumSystemVersion'])('says that %s is missing', async (field) => {
    const missing = { problem: 'missing_field', message: field }
    await expect(analyzeMac(omit(macosFields, field))).rejects.toMatchObject(missing)
  })

  it('has no icon of a container that is broken or has no PNG', async () => {
    const sound = buildIcns([['ic07', buildPng(fill(16, red))]])
    const endless = Buffer.from(sound)
    endless.writeUInt32BE(0, 12)
    const tooLong = Buffer.from(sound)
    tooLong.writeUInt32BE(0xffffffff, 12)
    const many = buildIcns(Array.from({ length: 100_000 }, () => ['ic07', Buffer.alloc(0)]))
    for (const icns of [
      endless,
      tooLong,
      many,
      sound.subarray(0, 30),
      Buffer.from('icns'),
      buildIcns([['is32', Buffer.alloc(9)]]),
    ]) {
      expect((await analyzeMac(macosFields, { 'Resources/AppIcon.icns': icns })).icon).toBeUndefined()
    }
  })
})

describe('readXcframework', () => {
  const library = (identifier: string, architectures: string[], fields: Fields = {}) => ({
    LibraryIdentifier: identifier,
    LibraryPath: 'App.framework',
    SupportedArchitectures: architectures,
    SupportedPlatform: 'ios',
    ...fields,
  })
  const simulator = library('ios-arm64_x86_64-simulator', ['arm64', 'x86_64'], {
    SupportedPlatformVariant: 'simulator',
  })
  const inner = {
    CFBundleIdentifier: 'io.flutter.flutter.app',
    CFBundleName: 'App',
    MinimumOSVersion: '13.0',
  }
  const analyzeFramework = (libraries: Fields[], files: Record<string, Fields>, root = 'App.xcframework/') => {
    const lists = Object.entries({ 'Info.plist': { AvailableLibraries: libraries }, ...files })
    const all = lists.map(([name, fields]) => [`${root}${name}`, buildXmlPlist(fields)])
    const archive = createArchive(createFiles(Object.fromEntries(all)))
    const found = findXcframework(archive.entries.keys())
    if (found === undefined) throw new Error('no framework was found')
    return readXcframework(archive, found)
  }

  it.each(['App.xcframework/', 'Release/App.xcframework/', ''])(
    'reads the framework for devices at "%s"',
    async (root) => {
      const facts = await analyzeFramework(
        [simulator, library('ios-arm64', ['arm64'])],
        { 'ios-arm64/App.framework/Info.plist': inner },
        root,
      )
      expect(facts).toEqual({
        displayName: 'App',
        packageName: 'io.flutter.flutter.app',
        minSdkVersion: '13.0',
        targetSdkVersion: '13.0',
        architectures: ['arm64'],
      })
    },
  )

  it('reads one for macOS, and one for the simulator only', async () => {
    const mac = { ...omit(inner, 'MinimumOSVersion'), LSMinimumSystemVersion: '10.14', DTSDKName: 'macosx14.2' }
    const path = 'macos-arm64_x86_64/App.framework/Versions/A/Resources/Info.plist'
    const libraries = [library('macos-arm64_x86_64', ['arm64', 'x86_64', 'not one'])]
    expect(await analyzeFramework(libraries, { [path]: mac })).toMatchObject({
      minSdkVersion: '10.14',
      targetSdkVersion: '14.2',
      architectures: ['arm64', 'x86_64'],
    })
    const simulated = { 'ios-arm64_x86_64-simulator/App.framework/Info.plist': inner }
    expect(await analyzeFramework([simulator], simulated)).toMatchObject({ architectures: ['arm64', 'x86_64'] })
  })

  it('says what is missing', async () => {
    const libraries = [library('ios-arm64', ['arm64'])]
    const path = 'ios-arm64/App.framework/Info.plist'
    const missing = (message: string) => ({ problem: 'missing_field', message })
    await expect(analyzeFramework([], { [path]: inner })).rejects.toMatchObject(missing('AvailableLibraries'))
    for (const field of ['CFBundleIdentifier', 'MinimumOSVersion']) {
      await expect(analyzeFramework(libraries, { [path]: omit(inner, field) })).rejects.toMatchObject(missing(field))
    }
    const gone = analyzeFramework(libraries, { 'ios-x/App.framework/Info.plist': inner })
    await expect(gone).rejects.toMatchObject(missing('CFBundleIdentifier'))
  })
})
