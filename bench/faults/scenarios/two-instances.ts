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
/** Ten times as fast as allowed: what arrives before the instances have told each other is a small part of the limit. */
const askEveryMs = 20
/** Of the limit: what two instances together may let through more or less. */
const tolerance = 0.1

/** One caller, and one device, that ask both instances in turn for three times what they may. */
async function exceedLimits(report: Report): Promise<void> {
  const pair = await openPair({ GODWIT_RATE_LIMIT: String(limit) })
  const apps = await publishApps(createPublisher({ api: clientOf(pair.servers[0]), ledger: createLedger() }), 1)
  const { appId, version } = takeFirst(apps).release
  const check = { app_id: appId, release_version: version, channel: 'stable', platform: 'android', arch: 'aarch64' }
  const device = JSON.stringify({ ...check, client_id: randomUUID() })
  const asker = createAsker(8)
  const kinds = [
    { who: 'an API key', method: 'GET', path: '/api/v1/users/me', headers: { authorization: `Bearer ${adminKey}` } },
    { who: 'a device', method: 'POST', path: '/api/v1/patches/check', body: device },
  ]
  // The minutes of the clock are what is counted in.
  await sleep(windowMs - (Date.now() % windowMs) + 500)
  for (const { who, method, path, body, headers } of kinds) {
    let passed = 0
    const startedMs = performance.now()
    for (let turn = 0; turn < limit * 3; turn += 1) {
      const earlyMs = startedMs + turn * askEveryMs - performance.now()
      if (earlyMs > 0) await sleep(earlyMs)
      const server = pair.servers[turn % 2 === 0 ? 0 : 1]
      const { status } = await asker.ask(method, `${server.baseUrl}${path}`, body, headers)
      if (status === 200) passed += 1
    }
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(0)
    report.note(`${who}: ${passed} of ${limit * 3} requests passed in ${seconds} s; the limit is ${limit} a minute`)
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
