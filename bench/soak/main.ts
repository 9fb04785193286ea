import { fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createClient } from '@godwit/sdk'
import { adminKey } from '../check/servers.ts'
import { atTheEnd, runAndClose } from '../closing.ts'
import { type Godwit, openGodwit } from '../metrics/godwit.ts'
import { readFamilyMemory, readServiceMemory } from '../metrics/memory.ts'
import { compareCounts } from './compare-counts.ts'
import type { Truth } from './fleet.ts'
import type { PlayerMessage, PlayerTask } from './player.ts'
import { changeOffer, publishSoakApp } from './publish.ts'
import { queries } from './queries.ts'
import { reportSoak, type Sample } from './report.ts'

/**
 * A server under everything at once for a while: checks at a steady rate with the events that follow from them, a question
 * to the metrics every second, another patch offered every ten. At the end: whether its memory grew, whether anything
 * failed, and whether it counted what the devices did. Ends with 1 when something is wrong.
 *
 *   npm run soak -- [--minutes 20] [--rate 5000] [--devices 200000] [--url http://localhost:8080 --token <key>]
 *
 * Without --url it starts a server of its own, whose memory it can see.
 */
const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '20' },
    rate: { type: 'string', default: '5000' },
    devices: { type: 'string', default: '200000' },
    seed: { type: 'string', default: '1' },
    url: { type: 'string' },
    token: { type: 'string', default: adminKey },
  },
})
const queryMs = 1000
const offerMs = 10_000
const sampleMs = 10_000

await runAndClose(soak)

async function soak(): Promise<void> {
  const godwit = options.url === undefined ? await startServer() : undefined
  const baseUrl = godwit?.baseUrl() ?? options.url ?? ''
  const api = createClient({ baseUrl, token: options.token })
  const app = await publishSoakApp(api)
  const seconds = Number(options.minutes) * 60
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}`)
  console.log(`${options.minutes} minutes, ${options.rate} checks/s of ${options.devices} devices\n`)

  const samples: Sample[] = []
  const errors: Record<string, number> = {}
  const count = (reason: string, times = 1) => {
    errors[reason] = (errors[reason] ?? 0) + times
  }
  const attempt = async (what: string, work: () => Promise<unknown>) => {
    try {
      await work()
    } catch (error) {
      count(`${what}: ${error instanceof Error ? error.message : error}`)
    }
  }
  const queryTimesMs: number[] = []
  const over = new AbortController()
  const background = Promise.all([
    repeat(queryMs, over.signal, (turn) =>
      attempt('query', async () => {
        const askedAt = performance.now()
        await queries[turn % queries.length]?.(api, app.appId)
        queryTimesMs.push(performance.now() - askedAt)
      }),
    ),
    repeat(offerMs, over.signal, (turn) => attempt('promote', () => changeOffer(api, app, turn))),
    repeat(sampleMs, over.signal, async () => {
      const memory = godwit === undefined ? undefined : await readMemory(godwit)
      samples.push({ atSeconds: performance.now() / 1000, ...memory })
    }),
  ])
  const task: PlayerTask = {
    baseUrl,
    appId: app.appId,
    devices: Number(options.devices),
    seed: Number(options.seed),
    checksPerSecond: Number(options.rate),
    seconds,
  }
  const played = await play(task, (message) => {
    for (const [reason, times] of Object.entries(message.errors)) count(`device: ${reason}`, times)
    const memory = samples.at(-1)
    console.error(
      `${message.checks} checks, ${message.events} events; p50 ${message.p50Ms.toFixed(1)} ms, p99 ${message.p99Ms.toFixed(1)} ms; ` +
        `server ${memory?.serverMb?.toFixed(0)} MB, PostgreSQL ${memory?.postgresMb?.toFixed(0)} MB; ${JSON.stringify(errors)}`,
    )
  })
  over.abort()
  await background
  const counts = await compareCounts(api, app, played.truth)
  const isFine = reportSoak({ ...played, samples, errors, queryTimesMs, counts })
  if (!isFine) process.exitCode = 1
}

async function startServer(): Promise<Godwit> {
  const folder = await mkdtemp(join(tmpdir(), 'godwit-soak-'))
  atTheEnd(() => rm(folder, { recursive: true, force: true }))
  const godwit = await openGodwit(folder)
  atTheEnd(godwit.close)
  return godwit
}

async function readMemory(godwit: Godwit) {
  const { rssMb } = await readServiceMemory(godwit.serverPid())
  return { serverMb: rssMb, postgresMb: await readFamilyMemory(await godwit.postgresPid()) }
}

/** Every so often, one after the other: what takes longer makes the next come later. */
async function repeat(everyMs: number, signal: AbortSignal, work: (turn: number) => Promise<unknown>): Promise<void> {
  const startedAt = performance.now()
  for (let turn = 0; !signal.aborted; turn += 1) {
    await work(turn)
    const dueMs = startedAt + (turn + 1) * everyMs - performance.now()
    if (dueMs > 0) await sleep(dueMs, undefined, { signal }).catch(() => undefined)
  }
}

type Interval = Extract<PlayerMessage, { kind: 'interval' }>

function play(
  task: PlayerTask,
  onInterval: (interval: Interval) => void,
): Promise<{ intervals: Interval[]; truth: Truth; late: number }> {
  const player = fork(new URL('./player.ts', import.meta.url).pathname)
  atTheEnd(async () => player.kill())
  const intervals: Interval[] = []
  return new Promise((resolve, reject) => {
    player.once('exit', (code) => reject(new Error(`the devices ended with ${code}`)))
    player.on('message', (message: PlayerMessage) => {
      if (message.kind === 'end') return resolve({ intervals, truth: message.truth, late: message.late })
      intervals.push(message)
      onInterval(message)
    })
    player.send(task)
  })
}
