import { describe, expect, it } from 'vitest'
import { readAndroidApp } from '../../../src/analyzer/android/read-android-app.ts'
import { UnanalyzableError } from '../../../src/analyzer/app-facts.ts'
import { createArchive, readFixture, readFixtureFiles } from '../memory-archive.ts'
import { rewriteTable } from './rewrite-table.ts'

const made = ['adaptive', 'bare', 'chain', 'codename', 'cycle', 'gradients', 'layers', 'locales', 'minimum', 'plain']
const names = [...made, 'round', 'shortened', 'sparse', 'utf16', 'vector']

/** What aapt2 says; what it leaves out is what the analyzer has to fall back to. */
async function readBadging(name: string) {
  const text = (await readFixture(`android/${name}.badging.txt`)).toString()
  const find = (pattern: RegExp) => pattern.exec(text)?.[1]
  const packageName = find(/^package: name='([^']*)'/m) ?? ''
  const minSdkVersion = find(/^sdkVersion:'(.*)'/m) ?? '1'
  return {
    displayName: find(/^application: label='([^']+)'/m) ?? packageName,
    packageName,
    minSdkVersion,
    targetSdkVersion: find(/^targetSdkVersion:'(.*)'/m) ?? minSdkVersion,
    architectures: [...(find(/^native-code: (.*)/m) ?? '').matchAll(/'([^']*)'/g)].map(([, abi]) => abi),
  }
}

async function readFacts(name: string, change = (_files: Map<string, Buffer>) => {}) {
  const files = await readFixtureFiles(`android/${name}`)
  change(files)
  const { icon, ...facts } = await readAndroidApp(createArchive(files), name.endsWith('.aab') ? 'aab' : 'apk')
  return { facts, icon }
}

describe('an APK', () => {
  it.each(names)('says of itself what aapt2 says of it: %s', async (name) => {
    expect((await readFacts(`${name}.apk`)).facts).toEqual(await readBadging(name))
  })

  it('made by the tools of 2011 is read as well', async () => {
    const { facts, icon } = await readFacts('../real/real-tc-debug.apk')
    expect(facts).toEqual({
      displayName: 'TCActivity',
      packageName: 'org.t0t0.androguard.TC',
      minSdkVersion: '1',
      targetSdkVersion: '1',
      architectures: [],
    })
    expect(icon).toBeDefined()
  })

  it('without a default name has the English one, else the first', async () => {
    expect((await readFacts('english.apk')).facts.displayName).toBe('English')
    expect((await readFacts('first.apk')).facts.displayName).toBe('Deutsch')
  })

  it.each([
    { shortOffsets: true, compact: false },
    { shortOffsets: false, compact: true },
    { shortOffsets: true, compact: true },
  ])('is the same with a table in another encoding: %o', async (variant) => {
    for (const name of ['locales.apk', 'plain.apk', 'chain.apk', 'gradients.apk']) {
      const rewrite = (files: Map<string, Buffer>) => {
        files.set('resources.arsc', rewriteTable(files.get('resources.arsc') ?? Buffer.alloc(0), variant))
      }
      expect(await readFacts(name, rewrite)).toEqual(await readFacts(name))
    }
  })

  it('with a broken resource table has its package for a name, and no icon', async () => {
    for (const table of [Buffer.alloc(0), Buffer.alloc(100), Buffer.alloc(100, 0xff)]) {
      const { facts, icon } = await readFacts('plain.apk', (files) => files.set('resources.arsc', table))
      expect(facts).toEqual({ ...(await readBadging('plain')), displayName: 'com.example.plain' })
      expect(icon).toBeUndefined()
    }
  })

  it('without a manifest is no app', async () => {
    const reading = readFacts('plain.apk', (files) => files.delete('AndroidManifest.xml'))
    await expect(reading).rejects.toMatchObject({ problem: 'unknown_format' })
  })
})

describe('an app bundle', () => {
  it.each(['bare', 'chain', 'codename', 'gradients', 'layers', 'vector'])('equals its APK: %s', async (name) => {
    expect(await readFacts(`${name}.aab`)).toEqual(await readFacts(`${name}.apk`))
  })

  it('has the architectures of all its modules, each once', async () => {
    const { facts, icon } = await readFacts('modules.aab')
    expect(facts).toEqual({ ...(await readBadging('plain')), architectures: ['arm64-v8a', 'x86'] })
    expect(icon).toEqual((await readFacts('plain.apk')).icon)
  })

  it('says what it was made of', async () => {
    const { facts, icon } = await readFacts('../real/aab-basic.aab')
    expect(facts).toEqual({
      displayName: 'Atlas Notes',
      packageName: 'com.example.atlas',
      minSdkVersion: '21',
      targetSdkVersion: '34',
      architectures: ['arm64-v8a', 'armeabi-v7a', 'x86_64'],
    })
    expect(icon).toBeDefined()
  })

  it('with a broken resource table has its package for a name', async () => {
    const { facts } = await readFacts('modules.aab', (files) => files.set('base/resources.pb', Buffer.alloc(50, 0xff)))
    expect(facts.displayName).toBe('com.example.plain')
  })
})

describe('a library', () => {
  const readLibrary = (manifest: string, ...libraries: string[]) => {
    const files = new Map([['AndroidManifest.xml', Buffer.from(manifest)]])
    for (const name of libraries) files.set(name, Buffer.from('ELF'))
    return readAndroidApp(createArchive(files), 'aar')
  }
  const declaration = '<?xml version="1.0" encoding="utf-8"?>\n<!-- <manifest package="a.decoy"> -->\n'

  it('is named by its package, and has the architectures of its native code', async () => {
    const manifest = `${declaration}<manifest xmlns:a="http://schemas.android.com/apk/res/android"
      package='com.example.lib'>\n<uses-sdk a:minSdkVersion="21" a:targetSdkVersion = "Baklava"/>
      <application a:label="Not &amp; shown"><activity/></application></manifest>\n`
    const facts = await readLibrary(manifest, 'jni/x86_64/liba.so', 'jni/arm64-v8a/liba.so', 'jni/x86_64/libb.so')
    expect(facts).toEqual({
      displayName: 'com.example.lib',
      packageName: 'com.example.lib',
      minSdkVersion: '21',
      targetSdkVersion: 'Baklava',
      architectures: ['arm64-v8a', 'x86_64'],
    })
  })

  it('runs everywhere when it does not say where', async () => {
    const { minSdkVersion, targetSdkVersion } = await readLibrary('<manifest package="com.example.lib"/>')
    expect([minSdkVersion, targetSdkVersion]).toEqual(['1', '1'])
  })

  it('without a package lacks a field', async () => {
    await expect(readLibrary('<manifest/>')).rejects.toEqual(new UnanalyzableError('missing_field', 'package'))
    await expect(readLibrary('<manifest package=""/>')).rejects.toMatchObject({ problem: 'missing_field' })
  })

  it.each([
    '',
    '<manifest package="a.b">',
    '<manifest package="a.b"/></x>',
    '<manifest package="a.b"/><manifest/>',
    '<!DOCTYPE m [<!ENTITY a "b">]><manifest package="&a;"/>',
    '<manifest package="a.b',
    '<manifest package=a.b/>',
    '<!-- <manifest package="a.b"/>',
    '<other package="a.b"/>',
    `<manifest package="\${applicationId}"/>`,
  ])('that is no sound XML is malformed: %s', async (manifest) => {
    await expect(readLibrary(manifest)).rejects.toMatchObject({ problem: 'malformed_content' })
  })

  it.each([
    '<a>'.repeat(100_000),
    `<manifest ${Array.from({ length: 2000 }, (_, index) => `a${index}=""`).join(' ')}/>`,
    `<a ${Array.from({ length: 100 }, (_, index) => `xmlns:a${index}=""`).join(' ')}/>`,
    `<a>${'<a/>'.repeat(300_000)}`,
  ])('with too much of anything is refused', async (manifest) => {
    await expect(readLibrary(manifest)).rejects.toMatchObject({ problem: 'limit_exceeded' })
  })
})
