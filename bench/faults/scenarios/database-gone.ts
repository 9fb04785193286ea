import { setTimeout as sleep } from 'node:timers/promises'
import type { FaultyDatabase } from '../database.ts'
import { percentile } from '../devices.ts'
import { canDropPackets, dropPackets } from '../packet-filter.ts'
import type { Report, Scenario, ScenarioOptions } from '../scenario.ts'
import { isServing, measureUntil, openWorld, readStatus, startControlRequests, takeFirst } from '../world.ts'

const quietMs = 5000
/** Refusals take no longer, once the service has found out. What a busy machine adds to a few is still no timeout. */
const atOnceMs = 100
const noTimeoutMs = 1000
/** It has found out when the first request was refused, and that may not take longer. */
const detectionMs = 5000
const recoveryMs = 15_000

type Failure = Record<'fail' | 'heal', (database: FaultyDatabase) => Promise<void>>

async function goWithout(report: Report, options: ScenarioOptions, how: Failure) {
  const world = await openWorld()
  const { database, server, devices, apps } = world
  const quiet = devices.enter('all was well')
  await sleep(quietMs)

  const without = devices.enter('the database was away')
  await how.fail(database)
  const failedMs = performance.now()
  const control = startControlRequests(server)
  await sleep(options.minutes * 60_000)
  report.must((await readStatus(`${server.baseUrl}/healthz`)) === 200, '/healthz says that the process lives')
  const readiness = await readStatus(`${server.baseUrl}/readyz`)
  // A load balancer that took every instance out would leave devices without answers.
  report.must(readiness === 200, `/readyz keeps the instance in the load balancer: ${readiness}`)
  const answers = await control.stop()

  devices.enter('the database came back')
  await how.heal(database)
  const recovered = await measureUntil(() => isServing(server, takeFirst(apps).app), recoveryMs)
  report.recovered(recovered)
  report.must(recovered < recoveryMs, `writes succeed within ${recoveryMs / 1000} s of the database's return`)
  await sleep(1000)
  const again = devices.enter('all was well again')
  await sleep(quietMs)

  report.mustAnswerAll(without)
  report.mustStayFast([quiet, again], without)
  const firstRefusal = answers.find(({ status }) => status === 503)
  const foundMs = firstRefusal === undefined ? Number.POSITIVE_INFINITY : firstRefusal.sentMs + firstRefusal.durationMs
  report.note(`control requests were refused after ${((foundMs - failedMs) / 1000).toFixed(2)} s`)
  report.must(foundMs - failedMs < detectionMs, `control requests are refused within ${detectionMs / 1000} s`)
  const refused = answers.filter(({ sentMs }) => sentMs > foundMs)
  const odd = refused.filter(({ status, retryAfter }) => status !== 503 || retryAfter === undefined)
  report.must(odd.length === 0, `${odd.length} of ${refused.length} control requests were not 503 with Retry-After`)
  const times = refused.map(({ durationMs }) => durationMs)
  const [p95, slowest] = [percentile(times, 0.95), Math.max(...times)]
  report.note(`${times.length} control requests refused: p95 ${p95.toFixed(1)} ms, slowest ${slowest.toFixed(0)} ms`)
  report.must(p95 < atOnceMs, `95 of 100 control requests are refused within ${atOnceMs} ms`)
  report.must(slowest < noTimeoutMs, `all control requests are refused within ${noTimeoutMs} ms`)
  await world.verify(report)
}

export const databaseStopped: Scenario = {
  name: 'database-stopped',
  title: 'PostgreSQL is stopped, and its port refuses',
  run: (report, options) => goWithout(report, options, { fail: ({ stop }) => stop(), heal: ({ heal }) => heal() }),
}

export const databaseBlackHoled: Scenario = {
  name: 'database-black-holed',
  title: 'PostgreSQL is behind a network that swallows everything',
  run: (report, options) =>
    goWithout(report, options, { fail: async ({ proxy }) => proxy.blackHole(), heal: ({ heal }) => heal() }),
}

export const databaseUnplugged: Scenario = {
  name: 'database-unplugged',
  title: 'no packet to or from PostgreSQL arrives, by a rule of iptables',
  run: async (report, options) => {
    if (!(await canDropPackets())) return report.skip('this takes root and iptables')
    let plugIn = async () => {}
    await goWithout(report, options, {
      fail: async ({ proxy }) => {
        plugIn = await dropPackets(proxy.port)
      },
      heal: () => plugIn(),
    })
  },
}
