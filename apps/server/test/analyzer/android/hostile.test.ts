import fc from 'fast-check'
import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { readAndroidApp } from '../../../src/analyzer/android/read-android-app.ts'
import { type AnalysisProblem, type AppFacts, UnanalyzableError } from '../../../src/analyzer/app-facts.ts'
import { expectQuick } from '../expect-quick.ts'
import { createArchive, readFixtureFiles } from '../memory-archive.ts'
import { writeElement, writeField, writeManifest } from './write-proto.ts'

/** What comes of it. Whatever else is thrown, and whatever takes longer, fails the test. */
async function analyze(files: Map<string, Buffer>, format: 'aab' | 'apk'): Promise<AppFacts | AnalysisProblem> {
  return await expectQuick(async () => {
    try {
      return await readAndroidApp(createArchive(files), format)
    } catch (error) {
      if (error instanceof UnanalyzableError) return error.problem
      throw error
    }
  })
}

async function analyzeWith(name: string, path: string, change: (file: Buffer) => Buffer | undefined) {
  const files = await readFixtureFiles(`android/${name}`)
  const file = Buffer.from(files.get(path) ?? Buffer.alloc(0))
  files.set(path, change(file) ?? file)
  return analyze(files, name.endsWith('.aab') ? 'aab' : 'apk')
}

const sizes = [0, 1, 7, 0x7fffffff, 0xffffffff]

describe('a hostile APK', () => {
  it.each(sizes)('with chunks of an impossible size is refused, or loses what they have: %i', async (size) => {
    for (const at of [4, 16]) {
      const inManifest = await analyzeWith('plain.apk', 'AndroidManifest.xml', (file) => {
        file.writeUInt32LE(size, at === 4 ? 4 : 12)
        return file
      })
      expect(inManifest).toBe('malformed_content')
      const inTable = await analyzeWith('plain.apk', 'resources.arsc', (file) => {
        file.writeUInt32LE(size, at)
        return file
      })
      expect(inTable).toMatchObject({ displayName: 'com.example.plain', minSdkVersion: '24' })
    }
  })

  it('with more strings than there is room for loses only what they have', async () => {
    const facts = await analyzeWith('plain.apk', 'resources.arsc', (file) => {
      file.writeUInt32LE(0xffffffff, 12 + 8)
      file.writeUInt32LE(0xffffffff, 12 + 20)
      return file
    })
    expect(facts).toMatchObject({ displayName: 'com.example.plain' })
  })

  it('with too many attributes of an element, or elements too deep, is refused', async () => {
    const grow = (count: number) => (file: Buffer) => {
      for (let at = 8; at < file.length; at += file.readUInt32LE(at + 4)) {
        if (file.readUInt16LE(at) === 0x0102) file.writeUInt16LE(count, at + 16 + 12)
      }
      return file
    }
    expect(await analyzeWith('plain.apk', 'AndroidManifest.xml', grow(1001))).toBe('limit_exceeded')
    expect(await analyzeWith('plain.apk', 'AndroidManifest.xml', grow(1000))).toBe('malformed_content')
    const nest = (file: Buffer) => {
      const start = findChunk(file, 0x0102)
      const nested = Buffer.concat([file, ...Array.from({ length: 30_000 }, () => start)])
      nested.writeUInt32LE(nested.length, 4)
      return nested
    }
    expect(await analyzeWith('plain.apk', 'AndroidManifest.xml', nest)).toBe('limit_exceeded')
  })

  it('of which all strings share the same bytes is refused', async () => {
    expect(await analyzeWith('plain.apk', 'AndroidManifest.xml', () => createSharedStrings())).toBe('limit_exceeded')
  })

  it('with a huge image for an icon has the next one', async () => {
    const huge = await sharp({ create: { width: 4000, height: 4000, channels: 3, background: 'red' } })
      .png()
      .toBuffer()
    const facts = await analyzeWith('plain.apk', 'res/mipmap-xxhdpi-v4/ic_launcher.png', () => huge)
    const { icon } = facts as AppFacts
    expect((await sharp(icon).metadata()).width).toBe(6)
  })
})

function findChunk(file: Buffer, type: number): Buffer {
  for (let at = 8; ; at += file.readUInt32LE(at + 4)) {
    if (file.readUInt16LE(at) === type) return file.subarray(at, at + file.readUInt32LE(at + 4))
  }
}

/** 100,000 names of attributes, each of 1 MB. */
function createSharedStrings(): Buffer {
  const count = 100_000
  const text = Buffer.alloc(1024 ** 2 + 4, 0x61)
  text.writeUInt16LE(0x8000 | 8, 0)
  text.writeUInt16LE(0, 2)
  const pool = Buffer.alloc(28 + count * 4)
  pool.writeUInt16LE(1, 0)
  pool.writeUInt16LE(28, 2)
  pool.writeUInt32LE(pool.length + text.length, 4)
  pool.writeUInt32LE(count, 8)
  pool.writeUInt32LE(pool.length, 20)
  const elements = Array.from({ length: 100 }, (_, index) => createElement(index * 1000))
  const header = Buffer.from([3, 0, 8, 0, 0, 0, 0, 0])
  const file = Buffer.concat([header, pool, text, ...elements])
  file.writeUInt32LE(file.length, 4)
  return file
}

function createElement(firstName: number): Buffer {
  const element = Buffer.alloc(36 + 1000 * 20)
  element.writeUInt16LE(0x0102, 0)
  element.writeUInt16LE(16, 2)
  element.writeUInt32LE(element.length, 4)
  element.writeUInt16LE(20, 24)
  element.writeUInt16LE(20, 26)
  element.writeUInt16LE(1000, 28)
  for (let index = 0; index < 1000; index += 1) element.writeUInt32LE(firstName + index, 36 + index * 20 + 4)
  return element
}

describe('a hostile app bundle', () => {
  const analyzeManifest = (manifest: Buffer) =>
    analyze(new Map([['base/manifest/AndroidManifest.xml', manifest]]), 'aab')

  it('with elements nested without end is refused', async () => {
    let node: Buffer = Buffer.alloc(0)
    for (let depth = 0; depth < 500; depth += 1) node = writeField(1, [writeField(5, [node])])
    expect(await analyzeManifest(node)).toBe('limit_exceeded')
    // The same tag of a message within, all the way to the end.
    const lengths = Buffer.alloc(400_000)
    for (let at = 0; at < lengths.length; at += 1) lengths[at] = at % 2 === 0 ? 0x0a : 0x7f
    expect(await analyzeManifest(lengths)).toBe('malformed_content')
  })

  it.each([
    ['a length beyond the end', [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]],
    ['a number without an end', Array.from({ length: 1000 }, () => 0xff)],
    ['a number that is cut off', [0x08, 0x80]],
    ['groups', [0x0b, 0x0b, 0x0b, 0x0c]],
    ['nothing', []],
  ])('with %s is malformed', async (_name, bytes) => {
    expect(await analyzeManifest(Buffer.from(bytes))).toBe('malformed_content')
    expect(await analyzeManifest(writeManifest([Buffer.from(bytes)]))).toMatchObject(
      bytes.length === 0 ? { minSdkVersion: '1' } : {},
    )
  })

  it('with a million attributes, or elements, is refused', async () => {
    const attributes = Buffer.alloc(2_000_000)
    for (let at = 0; at < attributes.length; at += 2) attributes[at] = 0x22
    expect(await analyzeManifest(writeField(1, [attributes]))).toBe('limit_exceeded')
    const child = writeField(5, [writeField(1, [])])
    const children = Buffer.concat(Array.from({ length: 300_000 }, () => child))
    expect(await analyzeManifest(writeField(1, [children]))).toBe('limit_exceeded')
  })

  it('with more configurations of a name than there are languages is cut, or loses the name', async () => {
    const config = writeField(6, [
      writeField(1, [writeField(3, 'xx')]),
      writeField(2, [writeField(4, [writeField(2, [writeField(1, 'Name')])])]),
    ])
    const configs = Buffer.concat(Array.from({ length: 200_000 }, () => config))
    const entry = writeField(3, [writeField(2, 'app_name'), configs])
    const type = writeField(3, [writeField(1, [writeField(1, 1)]), writeField(2, 'string'), entry])
    const table = writeField(2, [writeField(1, [writeField(1, 0x7f)]), type])
    const label = writeField(6, [writeField(1, [writeField(3, 'string/app_name')])])
    const attribute = writeField(4, [writeField(5, 0x01010001), label])
    const application = writeField(1, [writeField(3, 'application'), attribute])
    const files = new Map([
      ['base/manifest/AndroidManifest.xml', writeManifest([application])],
      ['base/resources.pb', table],
    ])
    expect(await analyze(files, 'aab')).toMatchObject({ displayName: 'Name' })
  })

  it('with 16 million empty parts of a table keeps its facts', async () => {
    const parts = Buffer.alloc(32 * 1024 ** 2)
    for (let at = 0; at < parts.length; at += 2) parts[at] = 0x12
    const facts = await analyzeWith('vector.aab', 'base/resources.pb', () => parts)
    expect(facts).toMatchObject({ displayName: 'Vector' })
  })
})

describe('a hostile drawing', () => {
  const draw = (children: Buffer[], size = 100) => {
    const vector = writeElement('vector', { viewportWidth: size, viewportHeight: size }, children)
    return analyzeWith('vector.aab', 'base/res/drawable/icon.xml', () => vector)
  }
  const black = { argb: 0xff000000 }
  const path = (pathData: string) => writeElement('path', { pathData, fillColor: black })
  const isDrawn = async (analysis: Promise<AppFacts | AnalysisProblem>) => {
    const facts = await analysis
    expect(facts).toMatchObject({ displayName: 'Vector' })
    return (facts as AppFacts).icon !== undefined
  }

  it('can be drawn at all, which the others show something by', async () => {
    expect(await isDrawn(draw([path('M0,0h100v100h-100z')]))).toBe(true)
  })

  it.each(['M0,0"/><image href="file:///etc/passwd"/>', 'M0,0&lt;', "M0,0'", 'url(#d1)', 'M0,0h1;'])(
    'puts no text of its own into the SVG: %s',
    async (data) => {
      expect(await isDrawn(draw([path(data)]))).toBe(false)
    },
  )

  it('of lines that all cross each other is drawn in time, or not at all', async () => {
    const spread = (index: number, by: number) => (index * by) % 100
    const crossing = (count: number) =>
      `M0,0${Array.from({ length: count }, (_, index) => `L${spread(index, 37)},${spread(index, 61)}`).join('')}`
    expect(await isDrawn(draw([path(crossing(10_000))]))).toBe(false)
    await isDrawn(draw([path(crossing(1700))]))
    await isDrawn(draw(Array.from({ length: 1000 }, () => path(crossing(200)))))
    const circles = 'a99,99 0 1 1 1,1'.repeat(700)
    await isDrawn(draw([path(`M50,50${circles}`)]))
    const clips = Array.from({ length: 32 }, () => writeElement('clip-path', { pathData: crossing(100) }))
    await isDrawn(draw([...clips, path(crossing(100))]))
  })

  it('of numbers out of range is not drawn', async () => {
    for (const data of ['M0,0L1e30,1e30', 'M0,0L99999999,1', 'M0,0a1e5,1e5 0 1 1 1,1']) {
      expect(await isDrawn(draw([path(data)]))).toBe(false)
    }
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, 1e30]) {
      expect(
        await isDrawn(draw([writeElement('group', { rotation: value, translateX: value }, [path('M0,0h1')])])),
      ).toBe(false)
      expect(await isDrawn(draw([path('M0,0h1')], value))).toBe(false)
    }
    let group = path('M0,0h100v100h-100z')
    for (let depth = 0; depth < 20; depth += 1) group = writeElement('group', { scaleX: 1000, scaleY: 1000 }, [group])
    expect(await isDrawn(draw([group]))).toBe(false)
  })

  it('of too many parts is not drawn', async () => {
    expect(await isDrawn(draw(Array.from({ length: 5000 }, () => path('M0,0h1'))))).toBe(false)
  })
})

describe('a file with some bytes changed', () => {
  const names = ['plain.apk', 'locales.apk', 'sparse.apk', 'utf16.apk', 'gradients.apk', 'layers.apk', 'vector.apk']
  const extremes = fc.constantFrom(0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff)
  const change = fc.record({
    file: fc.nat(),
    at: fc.nat(),
    value: fc.oneof(extremes, fc.nat()),
    bytes: fc.constantFrom(1, 2, 4),
  })

  it.each([...names, 'gradients.aab', 'layers.aab', 'vector.aab', 'modules.aab', '../real/aab-basic.aab'])(
    'is analyzed or refused, in time: %s',
    async (name) => {
      const whole = await readFixtureFiles(`android/${name}`)
      const targets = [...whole].filter(([path, file]) => file.length > 8 && /\.(xml|arsc|pb)$/.test(path))
      await fc.assert(
        fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), fc.nat(20), async (changes, cut) => {
          const files = new Map(whole)
          for (const { file, at, value, bytes } of changes) {
            const [path] = targets[file % targets.length] ?? ['']
            const changed = Buffer.from(files.get(path) ?? Buffer.alloc(8))
            const place = at % (changed.length - bytes)
            changed.writeUIntLE(value % 2 ** (8 * bytes), place, bytes)
            files.set(path, cut === 0 ? changed.subarray(0, place) : changed)
            if (changed.length < 12 || cut === 0) break
          }
          await analyze(files, name.endsWith('.aab') ? 'aab' : 'apk')
        }),
        { numRuns: 100 },
      )
    },
  )
})
