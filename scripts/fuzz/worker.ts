import { readlinkSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { UnanalyzableError } from '../../apps/server/src/analyzer/app-facts.ts'
import { startCoverage } from './coverage.ts'
import { createRandom, maxBytes, mutate } from './mutate.ts'
import { targets } from './targets.ts'

/** What one thread does: change inputs, keep those that reach what none did before, and tell which fail. */
export type WorkerData = { target: string; seed: number; shared: SharedArrayBuffer }

const { target: name, seed, shared }: WorkerData = workerData
const target = targets[name]
if (target === undefined) throw new Error(`no target ${name}: ${Object.keys(targets).join(', ')}`)
const { run } = target
const times = new Float64Array(shared, 0, 1)
const lengths = new Uint32Array(shared, 8, 1)
const current = new Uint8Array(shared, 16)

/** Runs between two looks at what was reached. */
const batchRuns = 100

if (process.platform === 'linux') parentPort?.postMessage({ thread: readlinkSync('/proc/thread-self') })
const random = createRandom(seed)
const corpus = await target.findSeeds()
const seeds = corpus.length
const coverage = startCoverage((url) => /\/analyzer\/|plist|protobufjs|yauzl|sax/.test(url))
const failures = new Set<string>()
let runs = 0
for (const input of corpus) await attempt(input)
const seen = coverage.take()

for (;;) {
  const batch = Array.from({ length: batchRuns }, () => mutate(choose(), choose(), random))
  for (const input of batch) await attempt(input)
  const found = coverage.take().difference(seen)
  if (found.size > 0) await findReasons(batch, found)
  parentPort?.postMessage({ runs, corpus: corpus.length - seeds, coverage: seen.size })
}

/** Those added last are chosen more often. */
function choose(): Buffer {
  const recent = Math.max(0, corpus.length - 20)
  const index = random(2) === 0 ? recent + random(corpus.length - recent) : random(corpus.length)
  return corpus[index] ?? Buffer.from([0])
}

/** Which of them ran what had never run: each again, alone. */
async function findReasons(batch: Buffer[], found: Set<string>): Promise<void> {
  for (const input of batch) {
    await attempt(input)
    const reached = coverage.take().intersection(found)
    if (reached.size > 0) corpus.push(input)
    for (const place of reached) {
      seen.add(place)
      found.delete(place)
    }
    if (found.size === 0) return
  }
  // What ran only because of the runs before it, such as the filling of a cache.
  for (const place of found) seen.add(place)
}

async function attempt(input: Buffer): Promise<void> {
  current.set(input.subarray(0, maxBytes))
  lengths[0] = input.length
  times[0] = Date.now()
  runs++
  try {
    await run(Buffer.from(input))
  } catch (error) {
    if (!(error instanceof UnanalyzableError)) report(input, error)
  }
  times[0] = 0
}

function report(input: Buffer, error: unknown): void {
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
  // One for each place at which it fails.
  const place = reason
    .split('\n')
    .slice(0, 3)
    .join('\n')
    .replaceAll(/0x[\da-f]+|\d{2,}(?=[^:]*$)/g, '#')
  if (failures.has(place)) return
  failures.add(place)
  parentPort?.postMessage({ failure: reason, input })
}
