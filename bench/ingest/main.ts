import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type pg from 'pg'
import { pino } from 'pino'
import { startEmbeddedPostgres } from '../../apps/server/src/embedded-postgres/index.ts'
import { publishPatches } from '../check/publish-patches.ts'
import { compareTurns, type Sample, summarize, takeTurns } from '../check/rounds.ts'
import { adminKey, startGodwit } from '../check/servers.ts'
import { atTheEnd, runAndClose } from '../closing.ts'
import { measureAccepting } from './accept.ts'
import { type Loss, measureLoss } from './kill.ts'

/**
 * What it takes to record which devices were seen: how many observations a second are brought to the database, what that
 * leaves of the rate of checks, and what is lost when the process is killed. Nothing here fails on a time: a figure is for
 * a person to read.
 *
 *   npm run bench:ingest -- [--only accept|checks|kill] [--rounds 11]
 */
const { values: options } = parseArgs({
  options: { only: { type: 'string' }, rounds: { type: 'string', default: '11' } },
})
const acceptMs = 5000
const roundMs = 2000
const warmUpMs = 2000
/** Until what a round recorded is compacted. */
const pauseMs = 3000
const connections = 50
const devices = 20_000
const kills = 5
/** What the database does while the process is killed, and how it ends. */
const disturbances: { name: string; disturb: (client: pg.Client) => Promise<() => Promise<void>> }[] = [
  { name: 'as it should be', disturb: async () => async () => {} },
  {
    name: 'takes nothing',
    disturb: async (client) => {
      await client.query('begin; lock table activity_segments in exclusive mode')
      return async () => void (await client.query('rollback'))
    },
  },
]

await runAndClose(bench)

async function bench(): Promise<void> {
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}\n`)
  const folder = await mkdtemp(join(tmpdir(), 'godwit-bench-ingest-'))
  atTheEnd(() => rm(folder, { recursive: true, force: true }))
  const isWanted = (part: string) => options.only === undefined || options.only === part
  if (isWanted('accept')) await benchAccepting(join(folder, 'accept'))
  if (isWanted('checks')) await benchChecks(folder)
  if (isWanted('kill')) await benchKills(join(folder, 'kill'))
}

async function openDatabase(dataDir: string): Promise<{ connectionString: string; stop: () => Promise<void> }> {
  const database = await startEmbeddedPostgres({ dataDir, log: pino({ level: 'warn' }) })
  atTheEnd(() => database.stop())
  return database
}

async function benchAccepting(folder: string): Promise<void> {
  const database = await openDatabase(join(folder, 'postgres'))
  const { connectionString } = database
  const accepted = await measureAccepting({ connectionString, spoolDir: join(folder, 'spool'), durationMs: acceptMs })
  await database.stop()
  const { observations, seconds, nsPerCheck, mostBacklogBytes, compactSeconds } = accepted
  console.log(
    `Accepted into segments, without HTTP, for ${seconds.toFixed(1)} s: ${perSecond(observations / seconds)};`,
  )
  console.log(
    `recordCheck took ${nsPerCheck.toFixed(0)} ns of each, and the backlog was at most ${(mostBacklogBytes / 1e6).toFixed(1)} MB.`,
  )
  console.log(
    `Compacted in ${compactSeconds.toFixed(1)} s: ${perSecond(observations / compactSeconds)} (goal 20,000 beside the server).\n`,
  )
}

async function benchChecks(folder: string): Promise<void> {
  const contestants = []
  for (const setting of ['off', 'on']) {
    const server = await startGodwit(join(folder, setting), { GODWIT_ACTIVITY: setting })
    atTheEnd(server.stop)
    const check = await publishPatches(`http://127.0.0.1:${server.port}`, adminKey)
    const bodies = Array.from({ length: devices }, () => JSON.stringify({ ...check, client_id: randomUUID() }))
    contestants.push({ name: setting, server, bodies })
  }
  const generator = fork(new URL('../check/load.ts', import.meta.url).pathname)
  const rounds = Number(options.rounds)
  console.log(
    `Checks over HTTP, ${connections} connections, medians of ${rounds} alternating rounds of ${roundMs / 1000} s.`,
  )
  console.log(
    'Ratios are medians of those of each turn. CPU time of the thread that answers, and of its process: another one compacts.\n',
  )
  const modes = [
    { sleeps: true, name: 'sleeps while it waits' },
    { sleeps: false, name: 'never sleeps, and so takes a core from what the server does beside answering' },
  ]
  for (const { sleeps, name } of modes) {
    const load = { connection: 'kept alive', connections, rounds, roundMs, warmUpMs, pauseMs, sleeps } as const
    const samples = await takeTurns(generator, contestants, load)
    console.log(`The load generator ${name}:\n`)
    reportChecks(samples)
  }
  generator.kill()
  for (const { server } of contestants) await server.stop()
}

function reportChecks(samples: Map<string, Sample[]>): void {
  console.log('| recording | checks/s | ratio | p50 ms | p99 ms | ratio | CPU µs/check | ratio | of the process |')
  console.log('|---|---:|---:|---:|---:|---:|---:|---:|---:|')
  const base = samples.get('off') ?? []
  for (const [name, taken] of samples) {
    const { rate, p50Ms, p99Ms, mainCpuUs, serverCpuUs } = summarize(taken)
    const compare = (read: (sample: Sample) => number) =>
      name === 'off' ? '' : compareTurns(taken, base, read).toFixed(2)
    const rates = [rate.toFixed(0), compare(({ checks, seconds }) => checks / seconds), p50Ms.toFixed(2)]
    const late = [p99Ms.toFixed(2), compare((sample) => sample.p99Ms)]
    const cpu = [mainCpuUs.toFixed(1), compare(({ mainCpuSeconds, checks }) => mainCpuSeconds / checks)]
    console.log(`| ${[name, ...rates, ...late, ...cpu, serverCpuUs.toFixed(1)].join(' | ')} |`)
  }
  console.log()
}

async function benchKills(folder: string): Promise<void> {
  const { connectionString } = await openDatabase(join(folder, 'postgres'))
  const dataDir = join(folder, 'data')
  const server = await startGodwit(dataDir, { DATABASE_URL: connectionString })
  const check = await publishPatches(`http://127.0.0.1:${server.port}`, adminKey)
  await server.stop()
  console.log(
    `SIGKILL under a load of new devices, ${kills} times each: checks that were answered and are not counted.\n`,
  )
  console.log('| database | answered | lost | the first of them, ms before the kill |')
  console.log('|---|---:|---:|---:|')
  for (const { name, disturb } of disturbances) {
    const losses: Loss[] = []
    for (let kill = 0; kill < kills; kill += 1) {
      losses.push(await measureLoss({ check, dataDir, databaseUrl: connectionString, disturb }))
    }
    const list = (read: (loss: Loss) => number) => losses.map((loss) => read(loss).toFixed(0)).join(', ')
    const columns = [list(({ answered }) => answered), list(({ lost }) => lost), list(({ lostMs }) => lostMs)]
    console.log(`| ${[name, ...columns].join(' | ')} |`)
  }
}

function perSecond(rate: number): string {
  return `${Math.round(rate).toLocaleString('en')} a second`
}
