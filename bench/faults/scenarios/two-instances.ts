import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { adminKey } from '../../../apps/server/test/support/server-process.ts'
import { percentile } from '../devices.ts'
import { createAsker } from '../http.ts'
import { createLedger } from '../ledger.ts'
import { clientOf, openPair, type Pair } from '../pair.ts'
import { measurePromotes } from '../promotes.ts'
import { createPublisher } from '../publisher.ts'
import type { Report, Scenario } from '../scenario.ts'
import { verifyLedger } from '../verify.ts'
import { openDevices, publishApps, takeFirst } from '../world.ts'

const visibleMs = 1000
const promotes = 20
const isListener = (sent: string) => sent.includes('listen app_changed')

/** A promotion on one instance while the other one has lost the connection on which it would be told. */
async function loseNotifications(report: Report, lose: (pair: Pair) => number): Promise<void> {
  const pair = await openPair()
  const { servers, database } = pair
  const [first, second] = servers
  const ledger = createLedger()
  const publisher = createPublisher({ api: clientOf(first), ledger })
  const apps = await publishApps(publisher, 2)
  const devices = await openDevices({ ledger, apps, baseUrl: () => second.baseUrl })
  const during = devices.enter('notifications were lost')
  const times: number[] = []
  for (let turn = 0; turn < promotes; turn += 1) {
    const lost = lose(pair)
    if (turn === 0) report.must(lost > 0, 'there was a connection to lose')
    times.push(...(await measurePromotes(publisher, takeFirst(apps), second.baseUrl, 1)))
    await sleep(300)
  }
  report.note(
    `visible on the other instance after p50 ${percentile(times, 0.5).toFixed(0)} ms, at most ${Math.max(...times).toFixed(0)} ms of ${times.length}`,
  )
  report.must(Math.max(...times) < visibleMs, `a promotion is visible on the other instance within ${visibleMs} ms`)
  report.mustAnswerAll(during)
  await devices.stop()
  report.addDevices(devices)
  const { api, baseUrl } = second
  report.addFindings(await verifyLedger({ api, baseUrl, databaseUrl: database.url, ledger }))
}

const limit = 300
const windowMs = 60_000
/** Of the limit: what two instances together may let through more or less. */
const tolerance = 0.1

/** One caller, and one device, that ask both instances in turn for more than they may. */
async function exceedLimits(report: Report): Promise<void> {
  const pair = await openPair({ GODWIT_RATE_LIMIT: String(limit) })
  const apps = await publishApps(createPublisher({ api: clientOf(pair.servers[0]), ledger: createLedger() }), 1)
  const { appId, version } = takeFirst(apps).release
  // What publishing has used of the caller's minute is over.
  await sleep(windowMs)
  const check = { app_id: appId, release_version: version, channel: 'stable', platform: 'android', arch: 'aarch64' }
  const device = JSON.stringify({ ...check, client_id: randomUUID() })
  const headers = { authorization: `Bearer ${adminKey}` }
  const kinds = [
    ['an API key', 'GET', '/api/v1/users/me', undefined, headers],
    ['a device', 'POST', '/api/v1/patches/check', device, {}],
  ] as const
  const asker = createAsker(8)
  for (const [who, method, path, body, more] of kinds) {
    const answers: Record<number, number> = {}
    const startedMs = performance.now()
    // Half a minute: however the minutes are cut, at most one limit and what became free of it meanwhile.
    for (let turn = 0; turn < limit * 3; turn += 1) {
      const server = pair.servers[turn % 2 === 0 ? 0 : 1]
      const { status } = await asker.ask(method, `${server.baseUrl}${path}`, body, more)
      answers[status] = (answers[status] ?? 0) + 1
    }
    const seconds = (performance.now() - startedMs) / 1000
    const passed = answers[200] ?? 0
    report.note(
      `${who}: ${passed} of ${limit * 3} requests passed in ${seconds.toFixed(1)} s, the limit is ${limit} a minute`,
    )
    const isHeld = passed >= limit * (1 - tolerance) && passed <= limit * (1 + tolerance)
    report.must(isHeld, `both instances together let ${who} pass ${limit} times, give or take 10%: ${passed}`)
  }
  asker.close()
}

export const twoInstances: Scenario[] = [
  {
    name: 'listen-cut',
    title: 'an instance loses the connection that tells it of changes, again and again',
    run: (report) => loseNotifications(report, ({ ways: [, way] }) => way.cut(isListener)),
  },
  {
    name: 'listen-silent',
    title: 'that connection is there, and tells nothing any more',
    run: (report) => loseNotifications(report, ({ ways: [, way] }) => way.mute(isListener)),
  },
  { name: 'limits-shared', title: 'a caller and a device ask two instances in turn', run: exceedLimits },
]
