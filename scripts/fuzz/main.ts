import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { maxBytes } from './mutate.ts'
import { targets } from './targets.ts'

/**
 * Looks for inputs that bring the parsers of the analyzer to anything but a value or a refusal: `node scripts/fuzz/main.ts
 * [--seconds 60] [--seed 1] [target …]`, all targets by default. Inputs that reach code that none reached before are kept
 * and changed further. What fails, hangs or takes too much memory is left in a folder, of which the name is told at the end.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string', default: '1' } },
})
const seconds = Number(values.seconds)
/** Of the processor's time, and of the clock's: what waits for ever takes none of the former. */
const maxRunMs = 2000
const maxWaitMs = 60_000
const dir = join(tmpdir(), 'godwit-fuzz')
let failures = 0

await mkdir(dir, { recursive: true })
for (const target of positionals.length > 0 ? positionals : Object.keys(targets)) await fuzz(target)
console.log(failures === 0 ? 'Nothing failed.' : `${failures} inputs failed: ${dir}`)
process.exitCode = failures === 0 ? 0 : 1

async function fuzz(target: string): Promise<void> {
  const endsAt = Date.now() + seconds * 1000
  for (let seed = Number(values.seed); Date.now() < endsAt; seed++) await runWorker(target, seed, endsAt)
}

/** Until the time is over, or an input brings the thread down. */
async function runWorker(target: string, seed: number, endsAt: number): Promise<void> {
  // Its first 16 bytes: when the input that runs began (ms), and its length.
  const shared = new SharedArrayBuffer(16 + maxBytes)
  const started = new Float64Array(shared, 0, 1)
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    workerData: { target, seed, shared },
    resourceLimits: { maxOldGenerationSizeMb: 512 },
  })
  let progress = ''
  let slowestMs = 0
  let thread: string | undefined
  let run = { startedAt: 0, processorMs: 0 }
  const { promise, resolve } = Promise.withResolvers<void>()
  const saveCurrent = (reason: string) => {
    const length = new Uint32Array(shared, 8, 1)[0] ?? 0
    return save(target, reason, Buffer.from(new Uint8Array(shared, 16, length)))
  }
  worker.on('message', (message) => {
    if (message.thread !== undefined) thread = message.thread
    else if (message.failure !== undefined) void save(target, message.failure, Buffer.from(message.input))
    else progress = `${message.runs} runs, ${message.corpus} inputs kept, ${message.coverage} blocks`
  })
  worker.on('error', (error) => void saveCurrent(String(error)).then(resolve))
  const watching = setInterval(() => {
    const startedAt = started[0] ?? 0
    const processorMs = readProcessorMs(thread)
    if (startedAt !== run.startedAt) run = { startedAt, processorMs }
    const runMs = startedAt === 0 ? 0 : processorMs - run.processorMs
    slowestMs = Math.max(slowestMs, runMs)
    const waitMs = startedAt === 0 ? 0 : Date.now() - startedAt
    if (runMs > maxRunMs || waitMs > maxWaitMs) {
      clearInterval(watching)
      void saveCurrent(`it takes ${runMs} ms of the processor, ${waitMs} ms in all`).then(resolve)
    } else if (Date.now() > endsAt) resolve()
  }, 100)
  await promise
  clearInterval(watching)
  await worker.terminate()
  console.log(`${target}, seed ${seed}: ${progress}, slowest about ${slowestMs} ms`)
}

/** Time of the processor that a thread has had: on a busy machine the clock says nothing. Only Linux tells it. */
function readProcessorMs(thread: string | undefined): number {
  if (thread === undefined) return Date.now()
  const file = `/proc/${thread}/stat`
  const stat = existsSync(file) ? readFileSync(file, 'utf8') : ''
  // proc(5): utime and stime are the 14th and 15th field, in ticks of 10 ms; the 2nd may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

async function save(target: string, reason: string, input: Buffer): Promise<void> {
  failures++
  const path = join(dir, `${target}-${createHash('sha256').update(input).digest('hex').slice(0, 12)}`)
  await writeFile(path, input)
  console.log(`FAILED ${path} (${input.length} bytes)\n${reason}\n`)
}
