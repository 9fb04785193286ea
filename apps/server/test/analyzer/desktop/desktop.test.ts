import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { UnanalyzableError } from '../../../src/analyzer/app-facts.ts'
import { findDesktopApp } from '../../../src/analyzer/desktop/find-desktop-app.ts'
import { readDesktopApp } from '../../../src/analyzer/desktop/read-desktop-app.ts'
import { buildPng, decodePixels, fill } from '../apple/build-images.ts'
import { buildElf, buildPe } from '../executables/build-executables.ts'
import { mutate } from '../executables/mutate.ts'
import { expectQuick } from '../expect-quick.ts'
import { createArchive, createFiles } from '../memory-archive.ts'

type Contents = Record<string, Buffer | string>

const version = JSON.stringify({ app_name: 'atlas', version: '1.2.3', build_number: '7', package_name: 'atlas_notes' })

const linux: Contents = {
  atlas: buildElf(),
  'lib/libapp.so': buildElf({ machine: 183 }),
  'data/flutter_assets/version.json': version,
}

const windows: Contents = {
  'atlas.exe': buildPe(),
  'flutter_windows.dll': buildPe({ machine: 0xaa64 }),
  'data/flutter_assets/version.json': version,
}

const omit = (contents: Contents, ...names: string[]): Contents =>
  Object.fromEntries(Object.entries(contents).filter(([name]) => !names.includes(name)))

const inFolder = (folder: string, contents: Contents): Contents =>
  Object.fromEntries(Object.entries(contents).map(([name, content]) => [`${folder}/${name}`, content]))

const find = (contents: Contents) => findDesktopApp(createArchive(createFiles(contents)).entries)

async function analyze(contents: Contents) {
  const archive = createArchive(createFiles(contents))
  const app = findDesktopApp(archive.entries)
  if (app === undefined) throw new Error('no app was found')
  return readDesktopApp(archive, app)
}

describe('findDesktopApp', () => {
  it('finds a bundle, also in folders', () => {
    expect(find(linux)).toEqual({ root: '', kind: 'linux' })
    expect(find(windows)).toEqual({ root: '', kind: 'windows' })
    expect(find(inFolder('build/linux/x64/release/bundle', linux))?.root).toBe('build/linux/x64/release/bundle')
    expect(find(inFolder('Release', windows))).toEqual({ root: 'Release', kind: 'windows' })
  })

  it('knows a bundle by either of its libraries', () => {
    const engine = { ...omit(linux, 'lib/libapp.so'), 'lib/libflutter_linux_gtk.so': '' }
    expect(find(engine)?.kind).toBe('linux')
    const code = { ...omit(windows, 'data/flutter_assets/version.json'), 'data/app.so': '' }
    expect(find(code)?.kind).toBe('windows')
  })

  it.each([
    ['an Android app', { 'lib/arm64-v8a/libapp.so': '', 'data/flutter_assets/x': '' }],
    ['a library without assets', omit(linux, 'data/flutter_assets/version.json')],
    ['assets without a library', omit(linux, 'lib/libapp.so')],
    ['assets elsewhere', { 'a/lib/libapp.so': '', 'b/data/flutter_assets/x': '' }],
    ['no program', omit(windows, 'atlas.exe')],
    ['an engine alone', { 'atlas.exe': '', 'flutter_windows.dll': '' }],
    ['what macOS adds', inFolder('__MACOSX', linux)],
  ])('is not led astray by %s', (_, contents) => {
    expect(find(contents)).toBeUndefined()
  })

  it('takes the shortest path of several, and of those the first by name', () => {
    const both = { ...inFolder('b', windows), ...inFolder('a', linux), ...inFolder('aa', linux) }
    expect(find(both)).toEqual({ root: 'a', kind: 'linux' })
  })
})

describe('readDesktopApp for Linux', () => {
  it('reads a real program', async () => {
    const start = readFileSync(new URL('../fixtures/desktop/node-x86_64.elf-start', import.meta.url))
    expect(await analyze(inFolder('bundle', { ...linux, atlas: start }))).toEqual({
      displayName: 'atlas',
      packageName: 'atlas_notes',
      minSdkVersion: '3.2.0',
      targetSdkVersion: '3.2.0',
      architectures: ['x86_64'],
    })
  })

  it('takes the program that is called as the app, else the first by name', async () => {
    const arm = buildElf({ machine: 183, kernel: [3, 7, 0] })
    expect((await analyze({ ...linux, aaa: arm, 'README.md': 'text' })).architectures).toEqual(['x86_64'])
    const other = { ...omit(linux, 'atlas'), 'a.txt': 'text', 'b.so': buildElf(), runner: arm }
    expect((await analyze(other)).architectures).toEqual(['arm64'])
  })

  it('names an app without a name by its program', async () => {
    const json = JSON.stringify({ package_name: 'atlas_notes' })
    expect((await analyze({ ...linux, 'data/flutter_assets/version.json': json })).displayName).toBe('atlas')
  })

  it('says what is missing', async () => {
    const missing = (message: string) => ({ problem: 'missing_field', message })
    const unnamed = { ...linux, 'data/flutter_assets/version.json': JSON.stringify({ app_name: 'atlas' }) }
    await expect(analyze(unnamed)).rejects.toMatchObject(missing('package_name'))
    const silent = { ...omit(linux, 'data/flutter_assets/version.json'), 'data/flutter_assets/x': '' }
    await expect(analyze(silent)).rejects.toMatchObject(missing('package_name'))
    await expect(analyze({ ...linux, atlas: buildElf({ system: 1 }) })).rejects.toMatchObject(
      missing('min_sdk_version'),
    )
  })

  it.each([
    ['no program', omit(linux, 'atlas')],
    ['a program that is none', { ...linux, atlas: '#!/bin/sh' }],
    ['a version.json that is none', { ...linux, 'data/flutter_assets/version.json': '{' }],
    ['a version.json without fields', { ...linux, 'data/flutter_assets/version.json': 'null' }],
    ['a package name that is none', { ...linux, 'data/flutter_assets/version.json': '{"package_name":"a b"}' }],
    ['brackets without end', { ...linux, 'data/flutter_assets/version.json': '['.repeat(60_000) }],
  ])('refuses %s', async (_, contents) => {
    await expect(analyze(contents)).rejects.toMatchObject({ problem: 'malformed_content' })
  })

  it('refuses a version.json that is larger than any', async () => {
    const large = { ...linux, 'data/flutter_assets/version.json': ' '.repeat(70_000) }
    await expect(analyze(large)).rejects.toMatchObject({ problem: 'limit_exceeded' })
  })
})

describe('readDesktopApp for Windows', () => {
  it('reads versions, the machine and the largest icon of the program', async () => {
    const icons = [16, 64, 32].map((px) => buildPng(fill(px, [0, 128, 0, 255])))
    const program = buildPe({ system: [10, 0], subsystem: [6, 1], icons: [Buffer.alloc(40), ...icons] })
    const { icon, ...facts } = await analyze(inFolder('Release', { ...windows, 'atlas.exe': program }))
    expect(facts).toEqual({
      displayName: 'atlas',
      packageName: 'atlas_notes',
      minSdkVersion: '6.1',
      targetSdkVersion: '10.0',
      architectures: ['x86_64'],
    })
    expect(await decodePixels(icon)).toMatchObject({ widthPx: 64, heightPx: 64 })
  })

  it('takes the program that is called as the app, whatever its case', async () => {
    const arm = buildPe({ machine: 0xaa64, is64: true })
    const program = { ...omit(windows, 'atlas.exe'), 'Atlas.EXE': arm, 'aaa.exe': buildPe() }
    expect((await analyze(program)).architectures).toEqual(['arm64'])
  })

  it('reads a program of 32 bits, and has no icon of bitmaps', async () => {
    const program = buildPe({ machine: 0x14c, is64: false, icons: [Buffer.alloc(40)] })
    const facts = await analyze({ ...windows, 'atlas.exe': program })
    expect(facts.architectures).toEqual(['x86'])
    expect(facts).not.toHaveProperty('icon')
  })

  it('reads no icon of a program of many megabytes', async () => {
    const program = buildPe({ icons: [buildPng(fill(16, [0, 0, 0, 255]))] })
    const large = Buffer.concat([program, Buffer.alloc(5 * 1024 ** 2)])
    expect(await analyze({ ...windows, 'atlas.exe': large })).not.toHaveProperty('icon')
  })

  it('has no icon of resources that point into themselves', async () => {
    const program = buildPe({ icons: [buildPng(fill(16, [0, 0, 0, 255]))] })
    const looped = Buffer.from(program)
    // The folder of all icons says that it has 65535, each of which is itself.
    const resources = 0x400
    looped.writeUInt16LE(0xffff, resources + 24 + 12)
    looped.writeUInt32LE(0x80000000 + 24, resources + 24 + 20)
    expect(await analyze({ ...windows, 'atlas.exe': looped })).not.toHaveProperty('icon')
  })

  it('refuses a program that is none', async () => {
    const failure = expect(analyze({ ...windows, 'atlas.exe': 'MZ' })).rejects
    await failure.toMatchObject({ problem: 'malformed_content' })
  })
})

describe('damaged bundles', () => {
  it('have facts or a problem, whichever of their files is damaged', async () => {
    const program = buildPe({ icons: [buildPng(fill(16, [1, 2, 3, 255]))] })
    const damaged = fc
      .constantFrom(linux, { ...windows, 'atlas.exe': program })
      .chain((contents) =>
        fc
          .constantFrom(...Object.entries(contents))
          .chain(([name, content]) => mutate(Buffer.from(content)).map((other) => ({ ...contents, [name]: other }))),
      )
    await fc.assert(
      fc.asyncProperty(damaged, async (contents) => {
        const problem = await analyze(contents).catch((error: unknown) => error)
        if (problem instanceof Error) expect(problem).toBeInstanceOf(UnanalyzableError)
      }),
      { numRuns: 600 },
    )
  })

  it('are told apart soon, however many and long their names are', async () => {
    const contents: Contents = { 'lib/libapp.so': '' }
    for (let index = 0; index < 50_000; index += 1) {
      contents[`${index}/lib/libapp.so`] = ''
      contents[`${index}/flutter_windows.dll`] = ''
    }
    for (let index = 0; index < 300; index += 1) contents[`${index}${'data/'.repeat(12_000)}.exe/`] = ''
    const { entries } = createArchive(createFiles(contents))
    expect(await expectQuick(() => findDesktopApp(entries))).toBeUndefined()
  })
})
