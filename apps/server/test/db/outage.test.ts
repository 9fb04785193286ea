import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, createClient } from '@godwit/sdk'
import pino from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Config, readConfig } from '../../src/config.ts'
import { createPool } from '../../src/db/connection.ts'
import { findFreePort } from '../../src/embedded-postgres/launch.ts'
import { openService, type Service } from '../../src/open-service.ts'
import { readSamples } from '../service/read-metrics.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../support/database-proxy.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestDatabase } from '../support/test-database.ts'

const log = pino({ level: 'silent' })
const apiKey = `sb_api_${'outage'.repeat(8)}`

let database: Awaited<ReturnType<typeof createTestDatabase>>
let proxy: DatabaseProxy
let dataDir: string
let config: Config
let api: Client
let opening: Promise<Service> | undefined
let waiting: AbortController

beforeEach(async () => {
  database = await createTestDatabase()
  proxy = await startDatabaseProxy(database.connectionString)
  dataDir = await mkdtemp(join(tmpdir(), 'godwit-outage-'))
  const port = await findFreePort()
  config = readConfig({
    HOST: '127.0.0.1',
    PORT: String(port),
    GODWIT_DATA_DIR: dataDir,
    GODWIT_ADMIN_API_KEY: apiKey,
    GODWIT_RATE_LIMIT: 'off',
  })
  api = createClient({ baseUrl: `http://127.0.0.1:${port}`, token: apiKey })
  waiting = new AbortController()
})
afterEach(async () => {
  waiting.abort()
  proxy.setMode('pass')
  await opening?.then(
    (service) => service.close(),
    () => undefined,
  )
  opening = undefined
  await proxy.stop()
  await database.drop()
  await rm(dataDir, { recursive: true, force: true })
})

function open(connectionString = proxy.connectionString): Promise<Service> {
  opening = openService({ config, log, connectionString, signal: waiting.signal })
  return opening
}

async function get(path: string) {
  const startedAt = performance.now()
  const response = await fetch(`http://127.0.0.1:${config.port}${path}`, {
    headers: { authorization: `Bearer ${apiKey}` },
  })
  const body = (await response.json()) as { code?: string; details?: string; status?: string }
  const retryAfter = response.headers.get('retry-after')
  return { status: response.status, body, retryAfter, ms: performance.now() - startedAt }
}

async function statusOf(path: string): Promise<number | undefined> {
  return await get(path).then(
    ({ status }) => status,
    () => undefined,
  )
}

async function createKnownApp() {
  const [organization] = (await api.listOrganizations()).organizations
  if (organization === undefined) throw new Error('the first account has no organization')
  return await createTestApp({ api, organizationId: organization.organization.id })
}

function check(appId: string) {
  const place = { channel: 'stable', platform: 'android', arch: 'aarch64' } as const
  return api.checkPatch({ body: { app_id: appId, release_version: '1', ...place } })
}

describe('an instance that starts without its database', () => {
  it('listens, says what it waits for, and serves by itself once the database is there', async () => {
    proxy.setMode('refuse')
    const service = open()
    await expect.poll(() => statusOf('/healthz')).toBe(200)
    await expect
      .poll(async () => (await get('/readyz')).body.details)
      .toMatch(/waits for the database: .*(ECONN|closed|terminated)/)
    expect(await get('/readyz')).toMatchObject({ status: 503, body: { code: 'unavailable' }, retryAfter: '1' })
    expect(await get('/api/v1/apps')).toMatchObject({ status: 503, body: { code: 'unavailable' }, retryAfter: '1' })
    await expect(check('any')).rejects.toMatchObject({ status: 503, code: 'unavailable' })
    const baseUrl = `http://127.0.0.1:${config.port}`
    const figures = await readSamples(baseUrl)
    expect(figures).toMatchObject({ godwit_database_up: 0, process_resident_memory_bytes: expect.any(Number) })

    proxy.setMode('pass')
    await expect.poll(() => statusOf('/readyz'), { timeout: 10_000, interval: 20 }).toBe(200)
    expect((await service).firstAccount).toBeDefined()
    expect(await statusOf('/api/v1/apps')).toBe(200)
    expect(await readSamples(baseUrl)).toMatchObject({ godwit_database_up: 1, godwit_device_index_apps: 0 })
  })

  it('waits no longer when it is told to stop', async () => {
    proxy.setMode('swallow')
    const service = open()
    await expect.poll(() => statusOf('/healthz')).toBe(200)
    waiting.abort(new Error('told to stop'))
    await expect(service).rejects.toThrow('told to stop')
    expect(await statusOf('/healthz')).toBeUndefined()
  })

  it('does not wait for what waiting cannot mend', async () => {
    const url = new URL(proxy.connectionString)
    url.password = 'wrong'
    await expect(open(url.href)).rejects.toThrow('password authentication failed')
    expect(await statusOf('/healthz')).toBeUndefined()
  })
})

describe.each(['refuse', 'swallow'] as const)('a running instance whose database begins to %s', (mode) => {
  it('answers checks as before and control requests with 503 at once, and goes on when it is back', async () => {
    const { firstAccount } = await open()
    expect(firstAccount).toBeDefined()
    const appId = await createKnownApp()
    expect(await check(appId)).toEqual({ patch_available: false })

    proxy.setMode(mode)
    const first = await get('/api/v1/apps')
    expect(first).toMatchObject({ status: 503, body: { code: 'unavailable' }, retryAfter: '5' })
    // Nothing tells of packets that are swallowed but an answer that is late.
    expect(first.ms).toBeLessThan(mode === 'swallow' ? 4500 : 1500)
    for (let request = 0; request < 20; request += 1) {
      const answer = await get('/api/v1/apps')
      expect(answer).toMatchObject({ status: 503, retryAfter: '5' })
      expect(answer.ms).toBeLessThan(500)
      const startedAt = performance.now()
      expect(await check(appId)).toEqual({ patch_available: false })
      expect(await check(`unknown-${request}`)).toEqual({ patch_available: false })
      expect(performance.now() - startedAt).toBeLessThan(500)
    }
    expect(await statusOf('/readyz')).toBe(200)

    proxy.setMode('pass')
    await expect.poll(() => statusOf('/api/v1/apps'), { timeout: 2500, interval: 20 }).toBe(200)
    // Jobs go on: a deletion is finished by one.
    await api.deleteApp({ params: { appId } })
    const pool = createPool(database.connectionString, 1)
    const countJobs = async () => {
      const { rows } = await pool.query(
        "select count(*)::int as waiting from pgboss.job where name = 'remove-device-events' and state <> 'completed'",
      )
      return rows[0].waiting
    }
    // The first try may have come too early for the thread that counts devices; the second comes ten seconds later.
    await expect.poll(countJobs, { timeout: 25_000 }).toBe(0)
    await pool.end()
  })
})
