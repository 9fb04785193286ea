import type { Kysely } from 'kysely'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDb, createPool, type Db } from '../../src/db/connection.ts'
import { createDeviceIndex, type DeviceIndex } from '../../src/devices/device-index.ts'
import { createTestApp, createTestRelease, findChannelId, uploadTestPatchArtifact } from '../support/publishing.ts'
import { runOnServer } from '../support/test-database.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

const log = pino({ level: 'silent' })

let service: TestService
let owner: TestAccount
let appId: string
let releaseId: number
let patchId: number
let queries = 0

/** Another instance on the same database, which counts its queries. */
let other: { db: Db; index: DeviceIndex }

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
  appId = await createTestApp(owner)
  releaseId = await createTestRelease(owner.api, appId, '1')
  patchId = (await owner.api.createPatch({ params: { appId }, body: { release_id: releaseId } })).id
  await uploadTestPatchArtifact(owner.api, { appId, patchId })
  other = await startOtherInstance()
})
afterAll(async () => {
  await other.index.stop()
  await other.db.destroy()
  await service.stop()
})

async function startOtherInstance() {
  const pool = createPool(service.connectionString)
  pool.on('error', () => undefined)
  const db: Kysely<never> = createDb(pool) as never
  const counted = db.withPlugin({
    transformQuery: ({ node }) => {
      queries += 1
      return node
    },
    transformResult: async ({ result }) => result,
  }) as never as Db
  const index = createDeviceIndex({
    db: counted,
    urls: service.deps.urls,
    log,
    connectionString: service.connectionString,
  })
  await index.start()
  return { db: counted, index }
}

async function ask(app = appId) {
  const place = { channel: 'stable', platform: 'android', arch: 'aarch64' } as const
  const { text } = await other.index.answer({ app_id: app, release_version: '1', ...place })
  return JSON.parse(text)
}

async function promote() {
  const channelId = await findChannelId(owner.api, appId)
  await owner.api.promotePatch({ params: { appId }, body: { patch_id: patchId, channel_id: channelId } })
}

const rollBack = () => owner.api.rollBackPatch({ params: { appId, releaseId, patchId } })
const rollForward = () => owner.api.rollForwardPatch({ params: { appId, releaseId, patchId } })

describe('the device index of another instance', () => {
  it('sees a promote, a rollback and a new app within a second', async () => {
    expect(await ask()).toEqual({ patch_available: false })
    await promote()
    await expect.poll(() => ask(), { timeout: 1000, interval: 10 }).toMatchObject({ patch: { number: 1 } })
    await rollBack()
    await expect.poll(() => ask(), { timeout: 1000, interval: 10 }).toMatchObject({ rolled_back_patch_numbers: [1] })
    await rollForward()
    const created = await createTestApp(owner)
    await expect.poll(() => other.index.hasApp(created), { timeout: 1000, interval: 10 }).toBe(true)
    await owner.api.deleteApp({ params: { appId: created } })
    await expect.poll(() => other.index.hasApp(created), { timeout: 1000, interval: 10 }).toBe(false)
  })

  it('answers from memory: a thousand checks of known and unknown apps cost no query', async () => {
    await expect.poll(() => ask(), { timeout: 1000 }).toMatchObject({ patch_available: true })
    queries = 0
    for (let check = 0; check < 1000; check += 1) {
      await ask()
      expect(await ask(`unknown-${check}`)).toEqual({ patch_available: false })
    }
    // The list of versions is read every five seconds.
    expect(queries).toBeLessThanOrEqual(1)
  })

  it('loads an app once, however many ask for it at once', async () => {
    const created = await createTestApp(owner)
    await expect.poll(() => other.index.hasApp(created)).toBe(true)
    const before = other.index.measure().loads
    await Promise.all(Array.from({ length: 50 }, () => ask(created)))
    expect(other.index.measure().loads).toBe(before + 1)
  })

  it('finds out what was told while its connection was lost', async () => {
    expect(await ask()).toMatchObject({ patch_available: true })
    await runOnServer(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${new URL(service.connectionString).pathname.slice(1)}' and query ilike 'listen%'`,
    )
    await rollBack()
    await expect.poll(() => ask(), { timeout: 8000 }).toMatchObject({ rolled_back_patch_numbers: [1] })
    await rollForward()
    await expect.poll(() => ask(), { timeout: 8000 }).toMatchObject({ patch_available: true })
  })
})

describe('without a database', () => {
  it('answers what it last knew, 503 for what it never loaded, and is true again afterwards', async () => {
    const neverAsked = await createTestApp(owner)
    await expect.poll(() => other.index.hasApp(neverAsked)).toBe(true)
    const known = await ask()
    expect(known).toMatchObject({ patch_available: true })
    const name = new URL(service.connectionString).pathname.slice(1)
    await runOnServer(`alter database ${name} allow_connections false`)
    await runOnServer(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
    try {
      for (let check = 0; check < 100; check += 1) expect(await ask()).toEqual(known)
      // Told of a change that cannot be read: better the last known answer than none.
      other.index.markChanged(appId, 1_000_000)
      expect(await ask()).toEqual(known)
      await expect(ask(neverAsked)).rejects.toMatchObject({ status: 503, code: 'unavailable' })
    } finally {
      await runOnServer(`alter database ${name} allow_connections true`)
    }
    await expect
      .poll(() => ask(neverAsked).catch(() => undefined), { timeout: 10_000 })
      .toEqual({ patch_available: false })
    await rollBack()
    await expect.poll(() => ask(), { timeout: 10_000 }).toMatchObject({ rolled_back_patch_numbers: [1] })
  })
})
