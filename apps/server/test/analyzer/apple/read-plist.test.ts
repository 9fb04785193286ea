import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { UnanalyzableError } from '../../../src/analyzer/app-facts.ts'
import { findDictionary, findText, findTexts, readPlist } from '../../../src/analyzer/apple/read-plist.ts'
import { mutate } from '../executables/mutate.ts'
import { expectQuick } from '../expect-quick.ts'
import {
  buildArray,
  buildBinaryPlist,
  buildDictionary,
  buildMarker,
  buildObjects,
  buildText,
  buildXmlPlist,
} from './build-plists.ts'

const head = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
`
const wrap = (content: string) => Buffer.from(`${head}<plist version="1.0"><dict>${content}</dict></plist>`)

const sample = {
  CFBundleName: 'Größe & <Maß> 日本 🦢',
  CFBundleIcons: { CFBundlePrimaryIcon: { CFBundleIconFiles: ['a', 'b'] } },
  many: Array.from({ length: 300 }, (_, index) => index),
  truth: true,
  real: 1.5,
  date: new Date('2026-01-01T00:00:00Z'),
  data: new Uint8Array([1, 2, 3]),
}

/** What becomes of a property list, which must be known soon. */
function judge(bytes: Buffer): Promise<string> {
  return expectQuick(() => read(bytes))
}

function read(bytes: Buffer): string {
  try {
    readPlist(bytes)
    return 'read'
  } catch (error) {
    if (error instanceof UnanalyzableError) return error.problem
    throw error
  }
}

describe('readPlist', () => {
  it.each([
    ['binary', buildBinaryPlist(sample)],
    ['XML', buildXmlPlist(sample)],
  ])('reads every kind of value: %s', (_, bytes) => {
    const plist = readPlist(bytes)
    expect(plist).toEqual(sample)
    expect(findText(plist, 'CFBundleName')).toBe('Größe & <Maß> 日本 🦢')
  })

  it('reads XML with a byte order mark, comments, CDATA and entities of numbers', () => {
    const plist = readPlist(
      Buffer.concat([
        Buffer.from('\ufeff'),
        wrap('<!-- <dict> --><key>A&amp;B</key>\n<string>x<![CDATA[<y> & z]]>&#65;&#x42;</string><!-- </dict> -->'),
      ]),
    )
    expect(plist).toEqual({ 'A&B': 'x<y> & zAB' })
  })

  it('finds nothing that the file does not have itself, nor of another kind', () => {
    const plist = readPlist(wrap('<key>n</key><integer>1</integer><key>blank</key><string>  </string>'))
    expect(['n', 'blank', 'toString', '__proto__'].map((key) => findText(plist, key))).toEqual(Array(4).fill(undefined))
    expect(findTexts(plist, 'n')).toEqual([])
    expect(findDictionary(plist, '__proto__')).toBeUndefined()
  })

  it('reads what is not UTF-8 with question marks', () => {
    const [start, end] = wrap('<key>a</key><string>x|y</string>').toString().split('|')
    const bytes = Buffer.concat([Buffer.from(start ?? ''), Buffer.from([0xff]), Buffer.from(end ?? '')])
    expect(readPlist(bytes)).toEqual({ a: 'x?y' })
  })

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['text', Buffer.from('{ a = b; }')],
    ['an array', Buffer.from(`${head}<plist><array/></plist>`)],
    ['two values', Buffer.from(`${head}<plist><dict/><dict/></plist>`)],
    ['two roots', Buffer.from(`${head}<plist><dict/></plist><plist><dict/></plist>`)],
    ['no plist', Buffer.from('<dict></dict>')],
    ['an open tag', Buffer.from(`${head}<plist><dict>`)],
    ['tags that cross', wrap('<key>a</key><array><dict></array></dict>')],
    ['a foreign tag', wrap('<key>a</key><script/>')],
    ['a foreign attribute', wrap('<key>a</key><string onload="x"/>')],
    ['keys without values', wrap('<key>a</key><key>b</key>')],
    ['a key to the prototype', wrap('<key>__proto__</key><dict/>')],
    ['data that is none', wrap('<key>a</key><data>%%%</data>')],
    ['an unfinished comment', wrap('<!-- ')],
    ['an array, binary', buildObjects([buildArray([])])],
    ['a key that is no text', buildObjects([buildDictionary([1], [1]), buildArray([])])],
    ['a header only', Buffer.from('bplist00')],
  ])('refuses %s', async (_, bytes) => {
    expect(await judge(bytes)).toBe('malformed_content')
  })
})

describe('hostile XML', async () => {
  const laughs = Array.from({ length: 10 }, (_, index) => `<!ENTITY a${index + 1} "${`&a${index};`.repeat(10)}">`)
  it.each([
    ['billion laughs', `<!DOCTYPE plist [<!ENTITY a0 "ha">${laughs.join('')}]><plist><dict/></plist>`],
    [
      'an external entity',
      `<!DOCTYPE plist [<!ENTITY x SYSTEM "file:///etc/passwd">]><plist><string>&x;</string></plist>`,
    ],
    ['a parameter entity', `<!DOCTYPE plist [<!ENTITY % x SYSTEM "http://x/">%x;]><plist><dict/></plist>`],
    ['an entity of its own', `${head}<!ENTITY a "b"><plist><dict/></plist>`],
    ['an unknown entity', `${head}<plist><dict><key>a</key><string>&a9;</string></dict></plist>`],
    ['spaces without end', `<plist><dict${' '.repeat(1_000_000)}`],
    ['starts of comments', `<plist>${'<!--'.repeat(200_000)}`],
    ['starts of tags', `<plist>${'<'.repeat(1_000_000)}`],
  ])('is refused: %s', async (_, text) => {
    expect(await judge(Buffer.from(text))).toBe('malformed_content')
  })

  it('is refused beyond 64 levels, however they are hidden', async () => {
    const nest = (depth: number, between = '') =>
      wrap(`<key>a</key>${`<array>${between}`.repeat(depth)}${'</array>'.repeat(depth)}`)
    expect(await judge(nest(62))).toBe('read')
    expect(await judge(nest(63))).toBe('limit_exceeded')
    expect(await judge(nest(60_000))).toBe('limit_exceeded')
    expect(await judge(nest(20_000, '<!--</array></array>-->'))).toBe('limit_exceeded')
    expect(await judge(nest(20_000, '<![CDATA[</array>]]>'))).toBe('limit_exceeded')
  })

  it('is refused with more values than any app has', async () => {
    expect(await judge(wrap(`<key>a</key><array>${'<string/>'.repeat(19_000)}</array>`))).toBe('read')
    expect(await judge(wrap(`<key>a</key><array>${'<string/>'.repeat(100_000)}</array>`))).toBe('limit_exceeded')
  })
})

describe('hostile binary property lists', () => {
  const text = buildText('a')

  it('are refused when objects refer to each other in a circle', async () => {
    expect(await judge(buildObjects([buildArray([0])]))).toBe('limit_exceeded')
    expect(await judge(buildObjects([buildArray([1, 1]), buildArray([0, 0])]))).toBe('limit_exceeded')
    expect(await judge(buildObjects([buildDictionary([1], [0]), text]))).toBe('limit_exceeded')
  })

  it('are refused when a kilobyte stands for more than any memory holds', async () => {
    const levels = Array.from({ length: 40 }, (_, index) => buildArray(Array(10).fill(index + 1)))
    expect(await judge(buildObjects([...levels, text]))).toBe('limit_exceeded')
  })

  it('are refused when a long text is referred to over and over', async () => {
    const long = buildText('x'.repeat(500_000))
    expect(await judge(buildObjects([buildArray(Array(60_000).fill(1)), long]))).toBe('limit_exceeded')
  })

  it('are refused beyond 64 levels', async () => {
    const nest = (depth: number) =>
      buildObjects([
        buildDictionary([depth + 1], [1]),
        ...Array.from({ length: depth - 1 }, (_, index) => buildArray([index + 2])),
        buildArray([]),
        text,
      ])
    expect(await judge(nest(63))).toBe('read')
    expect(await judge(nest(64))).toBe('limit_exceeded')
    expect(await judge(nest(60_000))).toBe('limit_exceeded')
  })

  it('are refused when they claim more objects than they have', async () => {
    expect(await judge(buildObjects([text], { count: 2n ** 60n }))).toBe('limit_exceeded')
    expect(await judge(buildObjects([text], { count: 50_000n }))).toBe('malformed_content')
    expect(await judge(buildObjects([text], { top: 2n ** 63n }))).toBe('malformed_content')
    expect(await judge(buildObjects([buildMarker(0xa0, 0xffffffff)]))).toBe('limit_exceeded')
    expect(await judge(buildObjects([buildMarker(0xa0, 100_000)]))).toBe('malformed_content')
    expect(await judge(buildObjects([buildMarker(0x50, 0xffffffff)]))).toBe('malformed_content')
    expect(await judge(buildObjects([buildDictionary([1], [9]), text]))).toBe('malformed_content')
  })
})

describe('damaged property lists', () => {
  it.each([
    ['binary', buildBinaryPlist(sample)],
    ['XML', buildXmlPlist(sample)],
  ])('are read or refused, and never a fault: %s', (_, bytes) => {
    fc.assert(
      fc.property(mutate(bytes), (damaged) => {
        read(damaged)
      }),
      { numRuns: 1000 },
    )
  })
})
