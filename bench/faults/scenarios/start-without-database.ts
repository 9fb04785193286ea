import { setTimeout as sleep } from 'node:timers/promises'
import { adminKey } from '../../../apps/server/test/support/server-process.ts'
import { type FaultyDatabase, openFaultyDatabase } from '../database.ts'
import { createAsker } from '../http.ts'
import type { Report, Scenario, ScenarioOptions } from '../scenario.ts'
import { makeFolder, measureUntil, openServer, readStatus } from '../world.ts'

const listeningMs = 10_000
const servingMs = 15_000

async function startWithout(
  report: Report,
  { minutes }: ScenarioOptions,
  fail: (database: FaultyDatabase) => Promise<void>,
): Promise<void> {
  const database = await openFaultyDatabase(await makeFolder())
  await fail(database)
  const server = await openServer({ DATABASE_URL: database.url }, { isStarted: false })
  const { baseUrl } = server
  const isStarted = server.start().then(
    () => true,
    () => false,
  )
  const asker = createAsker(2)
  const listening = await measureUntil(async () => (await readStatus(`${baseUrl}/healthz`)) === 200, listeningMs)
  report.must(listening < listeningMs, 'it listens without a database')
  report.note(`it listened after ${(listening / 1000).toFixed(1)} s`)
  report.must((await readStatus(`${baseUrl}/readyz`)) === 503, '/readyz says 503')
  const headers = { authorization: `Bearer ${adminKey}` }
  const answer = await asker.ask('GET', `${baseUrl}/api/v1/apps`, undefined, headers)
  const isRefused = answer.status === 503 && answer.retryAfter !== undefined
  report.must(isRefused, `control requests are 503 with Retry-After: ${answer.status}`)
  report.must(answer.durationMs < 1000, `at once: ${answer.durationMs.toFixed(0)} ms`)
  await sleep(Math.min(minutes, 1) * 60_000)
  await database.heal()
  const serving = await measureUntil(async () => (await readStatus(`${baseUrl}/readyz`)) === 200, servingMs)
  report.recovered(serving)
  report.must(serving < servingMs, `ready within ${servingMs / 1000} s of the database's return`)
  report.must(await isStarted, 'it says that it is ready')
  await server.api.listOrganizations()
  asker.close()
}

export const startedWithoutDatabase: Scenario[] = [
  {
    name: 'start-without-database',
    title: 'an instance starts, and nobody listens on the port of PostgreSQL',
    run: (report, options) => startWithout(report, options, (database) => database.stop()),
  },
  {
    name: 'start-black-holed',
    title: 'an instance starts, and PostgreSQL does not answer',
    run: (report, options) => startWithout(report, options, async (database) => database.proxy.blackHole()),
  },
]
