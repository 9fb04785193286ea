import { fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { dayMs } from '../../apps/server/src/time.ts'
import { adminKey } from '../check/servers.ts'
import { atTheEnd, runAndClose } from '../closing.ts'
import { type ActivityCounts, clientIdOf, type Plan } from './activity.ts'
import { measureChecks } from './check-latency.ts'
import { findDuckDb, loadDuckDbRows } from './duckdb.ts'
import type { GeneratorMessage, GeneratorTask } from './generator.ts'
import { dropFileCache, type Godwit, openGodwit } from './godwit.ts'
import { type Measured, measureQuestion, showMs } from './measure.ts'
import { readFamilyMemory, readServiceMemory } from './memory.ts'
import { publishReleases } from './publish.ts'
import { type Answer, type Cell, type Period, questions } from './questions.ts'
import { type Results, reportQuestions } from './report.ts'
import { loadPostgresRows, type RowStore } from './rows.ts'
import { describeStorage, measureStorage } from './storage.ts'

/**
 * The metrics of one app with a month of activity of many devices: how fast it is imported, what it takes in memory and on
 * disk, and how long each question takes, cold and warm, beside the same questions to rows in PostgreSQL and in DuckDB,
 * whose answers must be the same. Nothing here fails on a time: a figure is for a person to read.
 *
 *   npm run bench:metrics -- [--devices 1000000] [--days 28] [--launches-per-day 2.8] [--only godwit|rows]
 *     [--folder <folder>]
 *
 * With 2.8 launches a device is active on 94% of the days, in 2.8 hours of such a day; with 1 on 63%, in 1.6.
 * Rows are left out above a million devices. DuckDB is no dependency: npm install --no-save @duckdb/node-api
 */
const { values: options } = parseArgs({
  options: {
    devices: { type: 'string', default: '1000000' },
    days: { type: 'string', default: '28' },
    seed: { type: 'string', default: '1' },
    'launches-per-day': { type: 'string', default: '2.8' },
    only: { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
  },
})
const warmRuns = 5
const rowRuns = 3
const mostRowDevices = 1_000_000
const checkPhaseMs = 15_000
/** The least that can be set: nothing of a month of a million devices stays in it from one question to the next. */
const noCache = { GODWIT_METRICS_CACHE_MB: '16' }

const days = Number(options.days)
const endMs = Math.floor(Date.now() / dayMs) * dayMs
const period: Period = {
  start: new Date(endMs - days * dayMs).toISOString(),
  end: new Date(endMs).toISOString(),
}
const plan: Plan = {
  devices: Number(options.devices),
  days,
  seed: Number(options.seed),
  startSeconds: endMs / 1000 - days * (dayMs / 1000),
  launchesPerDay: Number(options['launches-per-day']),
}

await runAndClose(bench)

async function bench(): Promise<void> {
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}`)
  console.log(
    `${plan.devices} devices, ${plan.days} days from ${period.start}, ${plan.launchesPerDay} launches a day\n`,
  )
  if (!(await dropFileCache())) console.log("The system's cache of files stays: only root may empty it.\n")
  const folder = await mkdtemp(join(options.folder, 'godwit-bench-metrics-'))
  atTheEnd(() => rm(folder, { recursive: true, force: true }))
  const results: Results = new Map()
  const answers = options.only === 'rows' ? undefined : await benchGodwit(folder)
  if (answers !== undefined) results.set('Godwit', answers)
  if (options.only !== 'godwit' && plan.devices <= mostRowDevices) {
    const file = join(folder, 'rows.csv')
    await generate({ to: 'file', plan, file })
    results.set('PostgreSQL rows', await benchRows(await loadPostgresRows(folder, file), answers))
    const duckDb = findDuckDb()
    if (duckDb === undefined) console.log('DuckDB is left out: npm install --no-save @duckdb/node-api')
    else results.set('DuckDB', await benchRows(await loadDuckDbRows(duckDb, folder, file), answers))
  }
  reportQuestions(results)
}

async function benchGodwit(folder: string): Promise<Map<string, Measured>> {
  const godwit = await openGodwit(join(folder, 'godwit'))
  atTheEnd(godwit.close)
  const appId = await publishReleases(godwit.baseUrl(), adminKey)
  const metrics = `/api/v1/apps/${appId}/metrics`
  const counts = await load(godwit, appId)
  await godwit.get(`${metrics}/version-distribution`)
  for (const line of describeStorage(await measureStorage(godwit.connectionString()), counts)) console.log(line)
  await tellMemory(godwit, 'after the import')

  const answers = new Map<string, Measured>()
  for (const { name, path, read } of questions) {
    await godwit.restart()
    const ask = () => godwit.get<Answer>(`${metrics}/${path(period)}`)
    answers.set(name, await measureQuestion(ask, { warmRuns, asCells: read, asAnswer: (answer) => answer }))
  }
  for (const { path } of questions) await godwit.get(`${metrics}/${path(period)}`)
  await tellMemory(godwit, 'after every question')
  await benchChecks(godwit, appId)
  await godwit.close()
  return answers
}

async function load(godwit: Godwit, appId: string): Promise<ActivityCounts> {
  const url = `${godwit.baseUrl()}/api/v1/apps/${appId}/activity/import`
  const postgres = await godwit.postgresPid()
  let postgresMb = 0
  const sampler = setInterval(async () => {
    postgresMb = Math.max(postgresMb, await readFamilyMemory(postgres))
  }, 2000)
  const { counts, seconds } = await generate({ to: 'server', plan, url, token: adminKey }).finally(() =>
    clearInterval(sampler),
  )
  const { peakMb } = await readServiceMemory(godwit.serverPid())
  console.log(
    `imported ${counts.observations} lines in ${seconds.toFixed(0)} s: ${(counts.observations / seconds).toFixed(0)} lines/s (goal 200,000)`,
  )
  console.log(
    `memory during the import: server ${peakMb.toFixed(0)} MB, PostgreSQL ${postgresMb.toFixed(0)} MB at most`,
  )
  return counts
}

async function tellMemory(godwit: Godwit, when: string): Promise<void> {
  const { rssMb, peakMb } = await readServiceMemory(godwit.serverPid())
  const postgresMb = await readFamilyMemory(await godwit.postgresPid())
  console.log(
    `memory ${when}: server ${rssMb.toFixed(0)} MB (at most ${peakMb.toFixed(0)}), PostgreSQL ${postgresMb.toFixed(0)} MB`,
  )
}

/** Checks without and with month-long questions, one after the other, none of which finds anything in memory. */
async function benchChecks(godwit: Godwit, appId: string): Promise<void> {
  await godwit.restart(noCache)
  const makeCheck = (turn: number) => ({
    app_id: appId,
    channel: 'stable',
    release_version: '1.2.0+3',
    platform: 'android',
    arch: 'aarch64',
    client_id: clientIdOf(plan.seed, turn % plan.devices),
  })
  let answered = 0
  const ask = async () => {
    const until = performance.now() + checkPhaseMs
    while (performance.now() < until) {
      const query = new URLSearchParams({ ...period, granularity: 'day' })
      await godwit.get(`/api/v1/apps/${appId}/metrics/patch-adoption?${query}`)
      answered += 1
    }
  }
  const rest = () => new Promise((resolve) => setTimeout(resolve, checkPhaseMs))
  const measure = (during: () => Promise<unknown>) => measureChecks(godwit.baseUrl(), { makeCheck, during })
  await measure(() => new Promise((resolve) => setTimeout(resolve, 3000)))
  const [before, during, after] = [await measure(rest), await measure(ask), await measure(rest)]
  const alone = Math.max(before.p99Ms, after.p99Ms)
  console.log(
    `checks, p99: ${before.p99Ms.toFixed(2)} ms before, ${during.p99Ms.toFixed(2)} ms beside ${answered} cold questions over ${days} days, ` +
      `${after.p99Ms.toFixed(2)} ms after: ${(during.p99Ms / alone).toFixed(2)} times (goal 1.5); p50 ${before.p50Ms.toFixed(2)}, ` +
      `${during.p50Ms.toFixed(2)}, ${after.p50Ms.toFixed(2)} ms`,
  )
}

async function benchRows(store: RowStore, answers: Map<string, Measured> | undefined): Promise<Map<string, Measured>> {
  atTheEnd(store.close)
  const measured = new Map<string, Measured>()
  for (const { name, sql, duckDbSql } of questions) {
    const answer = answers?.get(name)?.answer ?? supposeAnswer(name)
    await store.restart()
    await dropFileCache()
    const text = (store.name === 'DuckDB' ? (duckDbSql ?? sql) : sql)(answer)
    const options = { warmRuns: rowRuns, asCells: (rows: Cell[][]) => rows, asAnswer: () => answer }
    const found = await measureQuestion(() => store.select(text), options)
    measured.set(name, found)
    console.log(`${store.name}, ${name}: ${showMs(found.coldMs)} ms cold, ${showMs(found.warmMs)} ms warm`)
  }
  await store.close()
  return measured
}

/** Without a server to say what it counted. */
function supposeAnswer(name: string): Answer {
  const start = name.includes('7 days') ? new Date(endMs - 7 * dayMs).toISOString() : period.start
  const none = { entries: [], patches: [], unique_users: 0, current: 0, cells: [], hourly: [] }
  return { ...none, as_of: period.end, range: { start, end: period.end }, window_days: days, lookback_days: 28 }
}

/** Runs the generator, and tells of each day. */
function generate(task: GeneratorTask): Promise<{ counts: ActivityCounts; seconds: number }> {
  const generator = fork(new URL('./generator.ts', import.meta.url).pathname)
  atTheEnd(async () => generator.kill())
  return new Promise((resolve, reject) => {
    generator.once('exit', (code) => reject(new Error(`the generator ended with ${code}`)))
    generator.on('message', (message: GeneratorMessage) => {
      if (message.kind === 'end') return resolve(message)
      const rate = (message.observations / message.seconds).toFixed(0)
      console.error(`day ${message.day + 1}: ${message.observations} lines to ${task.to}, ${rate} lines/s`)
    })
    generator.send(task)
  })
}
