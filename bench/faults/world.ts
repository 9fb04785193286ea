import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@godwit/sdk'
import { buildConnectionString } from '../../apps/server/src/embedded-postgres/connection.ts'
import { adminKey, createServerProcess, type ServerProcess } from '../../apps/server/test/support/server-process.ts'
import { atTheEnd } from '../closing.ts'
import { type FaultyDatabase, openFaultyDatabase } from './database.ts'
import { arch, type Devices, platforms, startDevices, type Target } from './devices.ts'
import { createAsker } from './http.ts'
import { createLedger, type Ledger, type LedgerRelease } from './ledger.ts'
import { createPublisher, type PublishedApp, type Publisher } from './publisher.ts'
import type { Report } from './scenario.ts'
import { verifyLedger } from './verify.ts'

/** A service that has published something, the devices that use it, and the ledger that says what is right. */
export type World = {
  server: ServerProcess
  ledger: Ledger
  publisher: Publisher
  apps: { app: PublishedApp; release: LedgerRelease }[]
  devices: Devices
  /** Ends the devices, looks for everything that was acknowledged, and reports both. */
  verify: (report: Report) => Promise<void>
}

/** The rate limits are the subject of a scenario of their own. */
const environmentOfAll = { GODWIT_RATE_LIMIT: 'off', GODWIT_LOG_LEVEL: 'warn' }
const checksPerSecond = 200
const appCount = 3

/** On a PostgreSQL that can be taken away. */
export async function openWorld(
  environment: Record<string, string> = {},
): Promise<World & { database: FaultyDatabase }> {
  const database = await openFaultyDatabase(await makeFolder())
  const server = await openServer({ DATABASE_URL: database.url, ...environment })
  return { ...(await populate(server, () => database.url)), database }
}

/** As it runs without any settings: with the database that it supervises itself. */
export async function openEmbeddedWorld(environment: Record<string, string> = {}, dataDir?: string): Promise<World> {
  const server = await openServer(environment, dataDir === undefined ? {} : { dataDir })
  return await populate(server, () => readEmbeddedUrl(server))
}

async function populate(server: ServerProcess, databaseUrl: () => string): Promise<World> {
  const { api, baseUrl } = server
  const ledger = createLedger()
  const publisher = createPublisher({ api, ledger })
  const apps = await publishApps(publisher, appCount)
  const devices = await openDevices({ ledger, apps, baseUrl: () => baseUrl })
  const verify = async (report: Report) => {
    await devices.stop()
    report.addDevices(devices)
    await publisher.settle()
    report.addFindings(await verifyLedger({ api, baseUrl, databaseUrl: databaseUrl(), ledger }))
  }
  return { server, ledger, publisher, apps, devices, verify }
}

/** From the files in the data folder, as an operator would. */
function readEmbeddedUrl({ dataDir }: ServerProcess): string {
  const password = readFileSync(join(dataDir, 'postgres', 'password'), 'utf8').trim()
  const port = readFileSync(join(dataDir, 'postgres', 'cluster', 'postmaster.pid'), 'utf8').split('\n')[3]
  return buildConnectionString(Number(port), password)
}

export function takeFirst({ 0: first }: World['apps']): World['apps'][number] {
  if (first === undefined) throw new Error('nothing was published')
  return first
}

export async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'godwit-faults-'))
  atTheEnd(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A server process, ended and removed at the end. */
export async function openServer(
  environment: Record<string, string> = {},
  options: { dataDir?: string; isStarted?: boolean } = {},
): Promise<ServerProcess> {
  const { dataDir, isStarted = true } = options
  const server = await createServerProcess({ ...environmentOfAll, ...environment }, dataDir)
  atTheEnd(server.remove)
  if (isStarted) await server.start()
  return server
}

export async function publishApps(publisher: Publisher, count: number): Promise<World['apps']> {
  const apps: World['apps'] = []
  for (let index = 1; index <= count; index += 1) {
    const app = await publisher.createApp(`App ${index}`)
    const release = await publisher.createRelease(app, `1.0.${index}`)
    await publisher.publishPatch(app, release)
    const second = await publisher.publishPatch(app, release)
    if (index === 1) await publisher.setRolledBack(release, second, true)
    await publisher.uploadRelease(release, { sizeBytes: 200_000 })
    apps.push({ app, release })
  }
  return apps
}

/** Devices of all apps, of which each has been asked for. */
export async function openDevices(options: {
  ledger: Ledger
  apps: World['apps']
  baseUrl: () => string
  rate?: number
}): Promise<Devices> {
  const { ledger, apps, baseUrl, rate = checksPerSecond } = options
  const targets: Target[] = apps.flatMap(({ release: { appId, version } }) =>
    platforms.map((platform) => ({ appId, place: { version, channel: 'stable', platform, arch } })),
  )
  const devices = startDevices({ baseUrl, ledger, targets: () => targets, checksPerSecond: rate })
  atTheEnd(devices.stop)
  devices.enter('warming up')
  await sleep(2000)
  return devices
}

/** How long it takes until what is awaited is so. */
export async function measureUntil(isSo: () => Promise<boolean>, limitMs: number, everyMs = 50): Promise<number> {
  const startedMs = performance.now()
  for (;;) {
    if (await isSo().catch(() => false)) return performance.now() - startedMs
    if (performance.now() - startedMs > limitMs) return Number.POSITIVE_INFINITY
    await sleep(everyMs)
  }
}

const asker = createAsker(8)

export async function readStatus(url: string): Promise<number> {
  return (await asker.ask('GET', url)).status
}

/** Whether a write succeeds, and a check is answered. */
export async function isServing({ baseUrl }: Pick<ServerProcess, 'baseUrl'>, app: PublishedApp): Promise<boolean> {
  const [write, ready] = await Promise.all([
    createClient({ baseUrl, token: adminKey }).createChannel({
      params: { appId: app.appId },
      body: { channel: `probe-${Math.random().toString(36).slice(2)}` },
    }),
    readStatus(`${baseUrl}/readyz`),
  ])
  return write.id > 0 && ready === 200
}

/** Asks the control door without an end, at a pace. */
export function startControlRequests({ baseUrl }: Pick<ServerProcess, 'baseUrl'>, everyMs = 200) {
  const client = createAsker(4)
  const answers: { sentMs: number; status: number | string; retryAfter: string | undefined; durationMs: number }[] = []
  let isOver = false
  const headers = { authorization: `Bearer ${adminKey}` }
  const work = async () => {
    while (!isOver) {
      const sentMs = performance.now()
      const answer = await client.ask('GET', `${baseUrl}/api/v1/apps`, undefined, headers).catch((error: Error) => ({
        status: error.message,
        retryAfter: undefined,
        durationMs: performance.now() - sentMs,
      }))
      answers.push({ sentMs, status: answer.status, retryAfter: answer.retryAfter, durationMs: answer.durationMs })
      await sleep(everyMs)
    }
  }
  const working = Promise.all([work(), work()])
  const stop = async () => {
    isOver = true
    await working
    client.close()
    return answers
  }
  atTheEnd(stop)
  return { answers, stop }
}
