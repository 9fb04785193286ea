import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@godwit/sdk'
import { findFreePort } from '../../../apps/server/src/embedded-postgres/launch.ts'
import { adminKey } from '../../../apps/server/test/support/server-process.ts'
import { openFaultyDatabase } from '../database.ts'
import { countFailed, percentile } from '../devices.ts'
import { createLedger } from '../ledger.ts'
import { hasLoadBalancer, startLoadBalancer } from '../load-balancer.ts'
import { createPublisher } from '../publisher.ts'
import type { Report, Scenario, ScenarioOptions } from '../scenario.ts'
import { verifyLedger } from '../verify.ts'
import { makeFolder, measureUntil, openDevices, openServer, publishApps, readStatus } from '../world.ts'

const checksPerSecond = 2000
const readyMs = 20_000

async function replaceInTurn(report: Report, { minutes }: ScenarioOptions): Promise<void> {
  if (!(await hasLoadBalancer())) return report.skip('HAProxy is not installed')
  const folder = await makeFolder()
  const database = await openFaultyDatabase(folder)
  const ports = [await findFreePort(), await findFreePort()]
  const { baseUrl } = await startLoadBalancer(folder, ports)
  const servers = []
  for (const port of ports) {
    const blobs = `file:${join(folder, 'blobs')}`
    const shared = { DATABASE_URL: database.url, GODWIT_BLOBS: blobs, GODWIT_PUBLIC_URL: baseUrl }
    servers.push(await openServer({ ...shared, PORT: String(port) }))
  }
  await measureUntil(async () => (await readStatus(`${baseUrl}/readyz`)) === 200, readyMs)
  const ledger = createLedger()
  const api = createClient({ baseUrl, token: adminKey })
  const publisher = createPublisher({ api, ledger })
  const apps = await publishApps(publisher, 3)
  const devices = await openDevices({ ledger, apps, baseUrl: () => baseUrl, rate: checksPerSecond })
  const during = devices.enter('instances were replaced')
  const startedMs = performance.now()
  const endsMs = startedMs + minutes * 60_000
  const failures: string[] = []
  let [uploads, patches, replaced] = [0, 0, 0]
  const isOver = () => performance.now() > endsMs && replaced >= servers.length
  const work = async (act: (turn: number) => Promise<unknown>) => {
    for (let turn = 0; !isOver(); turn += 1) {
      await act(turn).catch((error: Error) => failures.push(error.message))
      await sleep(100)
    }
  }
  const working = Promise.all([
    work(async (turn) => {
      const { release } = apps[turn % apps.length] ?? raise()
      await publisher.uploadRelease(release, { sizeBytes: 1_000_000 })
      uploads += 1
    }),
    work(async (turn) => {
      const { app, release } = apps[turn % apps.length] ?? raise()
      await publisher.publishPatch(app, release)
      patches += 1
    }),
  ])
  while (!isOver()) {
    const server = servers[replaced % servers.length] ?? raise()
    server.signal('SIGTERM')
    const code = await server.exited()
    report.must(code === 0, `an instance that is told to stop exits with 0: ${code}`)
    await server.start()
    // The load balancer must have seen that it is back before the other one goes.
    await sleep(1000)
    replaced += 1
  }
  await working
  const seconds = (performance.now() - startedMs) / 1000
  await devices.stop()
  report.addDevices(devices)
  report.mustAnswerAll(during)
  report.must(
    failures.length === 0,
    `${failures.length} requests of the team failed: ${failures.slice(0, 3).join('; ')}`,
  )
  report.note(
    `${replaced} replacements in ${seconds.toFixed(0)} s; ${(during.answered / seconds).toFixed(0)} checks/s, p99 ` +
      `${percentile(during.latenciesMs, 0.99).toFixed(1)} ms; ${uploads} uploads of 1 MB, ${patches} patches; ` +
      `${countFailed(during) + failures.length} failed`,
  )
  report.addFindings(await verifyLedger({ api, baseUrl, databaseUrl: database.url, ledger }))
}

function raise(): never {
  throw new Error('nothing was published')
}

export const rollingRestart: Scenario = {
  name: 'rolling-restart',
  title: 'both of two instances behind HAProxy are replaced in turn',
  run: replaceInTurn,
}
