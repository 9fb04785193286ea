import { cpus } from 'node:os'
import pino from 'pino'
import { createAnalyzer } from '../../apps/server/src/analyzer/run-analyzer.ts'
import { type CountingSource, openZip } from '../../apps/server/test/analyzer/core/build-zip.ts'
import { readSamples } from '../../apps/server/test/analyzer/core/sample-archives.ts'
import { atTheEnd, runAndClose } from '../closing.ts'
import { enlarge, sizes } from './archives.ts'

/**
 * What the analysis of one archive costs: time with the start of its process, the most memory that process had, and what
 * was read of the archive. Nothing here fails on a time: a figure is for a person to read.
 */
const rounds = 5

await runAndClose(bench)

async function bench(): Promise<void> {
  let peakRssBytes = 0
  const log = pino(
    { level: 'debug' },
    {
      write: (line) => {
        peakRssBytes = JSON.parse(line).peakRssBytes ?? peakRssBytes
      },
    },
  )
  const analyzer = createAnalyzer({ log })
  atTheEnd(analyzer.stop)

  const analyze = async (source: CountingSource) => {
    const before = process.memoryUsage().rss
    const startedAt = performance.now()
    const outcome = await analyzer.analyze(source)
    const ms = performance.now() - startedAt
    if (outcome.kind !== 'analyzed') throw new Error(JSON.stringify(outcome))
    return { ms, peakRssBytes, grownBytes: process.memoryUsage().rss - before }
  }

  console.log(
    `Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}, medians of ${rounds} rounds.\n`,
  )
  console.log('| format | archive MB | ms | child peak MB | reads | read KB | server grew MB |')
  console.log('|---|---:|---:|---:|---:|---:|---:|')
  const samples = await readSamples()
  // The first one also finds out how processes are started here.
  await analyze(openZip(samples.AAB))
  for (const [format, inputs] of Object.entries(samples)) {
    for (const { megabytes, sizeBytes } of sizes) {
      const source = openZip(enlarge(inputs, sizeBytes))
      const results = []
      for (let round = 0; round < rounds; round++) results.push(await analyze(source))
      const figures = [
        findMedian(results.map(({ ms }) => ms)).toFixed(0),
        toMb(Math.max(...results.map(({ peakRssBytes }) => peakRssBytes))),
        source.reads / rounds,
        (source.readBytes / rounds / 1024).toFixed(0),
        toMb(Math.max(0, ...results.map(({ grownBytes }) => grownBytes))),
      ]
      console.log(`| ${[format, megabytes, ...figures].join(' | ')} |`)
    }
  }
}

function toMb(bytes: number): string {
  return (bytes / 1024 ** 2).toFixed(0)
}

function findMedian(values: number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? 0
}
