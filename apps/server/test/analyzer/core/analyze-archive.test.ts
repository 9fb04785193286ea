import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { analyzeArchive } from '../../../src/analyzer/analyze-archive.ts'
import { UnanalyzableError } from '../../../src/analyzer/app-facts.ts'
import { createAnalyzer } from '../../../src/analyzer/run-analyzer.ts'
import { buildZip, fillRoom, openPieces, openZip, type ZipInput } from './build-zip.ts'
import { readSamples, type Sample, type SampleName } from './sample-archives.ts'

const mb = 1024 ** 2
const logged: { peakRssBytes?: number }[] = []
const analyzer = createAnalyzer({
  log: pino({ level: 'debug' }, { write: (line) => void logged.push(JSON.parse(line)) }),
})
let samples: Awaited<ReturnType<typeof readSamples>>

beforeAll(async () => {
  samples = await readSamples()
})
afterAll(() => analyzer.stop())

const known: [SampleName, object][] = [
  ['AAB', { platform: 'android', displayName: 'Atlas Notes', packageName: 'com.example.atlas' }],
  ['APK', { platform: 'android', displayName: 'TCActivity', packageName: 'org.t0t0.androguard.TC' }],
  ['AAR', { platform: 'android', packageName: 'com.example.module', minSdkVersion: '24', targetSdkVersion: '35' }],
  ['xcarchive', { platform: 'ios', displayName: 'Atlas iOS', minSdkVersion: '13.0', targetSdkVersion: '17.4' }],
  ['IPA', { platform: 'ios', displayName: 'Atlas iOS', architectures: ['arm64'] }],
  ['xcframework', { platform: 'ios', packageName: 'com.example.atlas', architectures: ['arm64'] }],
  ['macOS', { platform: 'macos', displayName: 'Atlas', architectures: ['x86_64', 'arm64'] }],
  ['Linux', { platform: 'linux', displayName: 'atlas', packageName: 'atlas_notes', architectures: ['x86_64'] }],
  ['Windows', { platform: 'windows', displayName: 'atlas', packageName: 'atlas_notes', architectures: ['x86_64'] }],
]

describe('an archive', () => {
  it.each(known)('of the kind %s is known by what is in it', async (name, facts) => {
    expect(await analyzeArchive(openZip(samples[name]))).toMatchObject(facts)
    // Whatever else there is, and in whatever order.
    const more = [...samples[name].toReversed(), { name: 'README.md', content: '' }, { name: 'lib/', content: '' }]
    expect(await analyzeArchive(openZip(more))).toMatchObject(facts)
  })

  it.each(known)('of the kind %s costs a few reads, however large it is', async (name, facts) => {
    const source = openZip(spread(samples[name], 200 * mb))
    expect(await analyzeArchive(source)).toMatchObject(facts)
    expect(source.sizeBytes).toBeGreaterThan(200 * mb)
    expect(source.reads).toBeLessThanOrEqual(2 + samples[name].length)
    expect(source.readBytes).toBeLessThanOrEqual((2 + samples[name].length) * 0.25 * mb)
  })

  it('of no known kind is none of ours', async () => {
    const inputs = [
      { name: 'notes.txt', content: 'hello' },
      { name: 'data/flutter_assets/version.json', content: '{}' },
    ]
    await expect(analyzeArchive(openZip(inputs))).rejects.toMatchObject({ problem: 'unknown_format' })
    await expect(analyzeArchive(openZip([]))).rejects.toMatchObject({ problem: 'unknown_format' })
  })

  it('with an app in it that leads nowhere is refused, with the reason', async () => {
    const manifest = { name: 'AndroidManifest.xml', content: 'no manifest at all' }
    await expect(analyzeArchive(openZip([manifest]))).rejects.toMatchObject({ problem: 'malformed_content' })
    const encrypted = samples.AAB.map((input) => ({ ...input, flags: /Manifest/.test(input.name) ? 1 : 0 }))
    await expect(analyzeArchive(openZip(encrypted))).rejects.toMatchObject({ problem: 'encrypted_archive' })
  })

  it('gives facts or a refusal, whichever bytes of it are changed', async () => {
    const archives = Object.values(samples).map((inputs) => {
      const stored = inputs.map((input) => ({ ...input, method: 0 }))
      return Buffer.concat(buildZip(stored).filter((piece) => Buffer.isBuffer(piece)))
    })
    const changed = fc.tuple(
      fc.constantFrom(...archives),
      fc.array(fc.tuple(fc.double({ min: 0, max: 0.999, noNaN: true }), fc.constantFrom(0, 1, 4, 0x7f, 0x80, 0xff)), {
        minLength: 1,
        maxLength: 6,
      }),
    )
    await fc.assert(
      fc.asyncProperty(changed, async ([archive, changes]) => {
        const bytes = Buffer.from(archive)
        for (const [at, value] of changes) bytes[Math.floor(at * bytes.length)] = value
        await analyzeArchive(openPieces([bytes])).catch((error) => expect(error).toBeInstanceOf(UnanalyzableError))
      }),
      { numRuns: 300 },
    )
  })
})

describe('an archive that is analyzed in a process of its own', () => {
  it('is understood, in less than 150 MB', async () => {
    const bytes = readFileSync(new URL('../fixtures/real/aab-basic.aab', import.meta.url))
    const outcome = await analyzer.analyze(openPieces([bytes]))
    expect(outcome).toMatchObject({
      kind: 'analyzed',
      facts: { displayName: 'Atlas Notes', packageName: 'com.example.atlas' },
    })
    expect(outcome.kind === 'analyzed' && outcome.facts.icon?.subarray(1, 4).toString()).toBe('PNG')
    expect(logged.at(-1)?.peakRssBytes).toBeLessThan(150 * mb)
  })

  it('takes no more for 200 MB', async () => {
    const source = openZip(spread(samples.AAB, 200 * mb))
    expect(await analyzer.analyze(source)).toMatchObject({ kind: 'analyzed' })
    expect(logged.at(-1)?.peakRssBytes).toBeLessThan(150 * mb)
  })

  it('is refused for what is wrong with it', async () => {
    const source = openZip([{ name: 'notes.txt', content: 'hello' }])
    expect(await analyzer.analyze(source)).toMatchObject({ kind: 'unanalyzable', problem: 'unknown_format' })
  })

  it('is refused or understood when it has as many and as long names as it may', async () => {
    const long = 'x/y.app/'.repeat(80)
    const names = Array.from({ length: 80_000 }, (_, index) => `${long}${index}.so`)
    const source = openZip([...names.map((name) => ({ name, method: 0 })), ...samples.IPA], { zip64: true })
    const outcome = await analyzer.analyze(source)
    expect(outcome.kind === 'unanalyzable' ? outcome.problem : outcome.kind).toMatch(/^analyzed$|^limit_exceeded$/)
  })
})

/** The files far apart from each other. */
function* spread(inputs: Sample[], sizeBytes: number): Generator<ZipInput> {
  const gap = Math.ceil(sizeBytes / inputs.length)
  for (const [index, input] of inputs.entries()) {
    yield input
    yield { name: `assets/large/${index}.bin`, content: fillRoom(gap) }
  }
}
