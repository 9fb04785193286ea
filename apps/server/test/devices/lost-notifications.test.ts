import pino from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createDb, createPool, type Db } from '../../src/db/connection.ts'
import { createDeviceIndex, type DeviceIndex } from '../../src/devices/device-index.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../support/database-proxy.ts'
import { createTestApp, createTestRelease, findChannelId, uploadTestPatchArtifact } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let owner: TestAccount
let appId: string
let releaseId: number
let patchId: number

/** Another instance, whose listening connection can be broken apart from the others. */
let proxy: DatabaseProxy
let other: { db: Db; index: DeviceIndex }

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
  appId = await createTestApp(owner)
  releaseId = await createTestRelease(owner.api, appId, '1')
  patchId = (await owner.api.createPatch({ params: { appId }, body: { release_id: releaseId } })).id
  await uploadTestPatchArtifact(owner.api, { appId, patchId })
  const channelId = await findChannelId(owner.api, appId)
  await owner.api.promotePatch({ params: { appId }, body: { patch_id: patchId, channel_id: channelId } })
})
afterAll(() => service.stop())

beforeEach(async () => {
  proxy = await startDatabaseProxy(service.connectionString)
  const db = createDb(createPool(service.connectionString))
  const log = pino({ level: 'silent' })
  const index = createDeviceIndex({
    db,
    urls: service.deps.urls,
    log,
    connectionString: proxy.connectionString,
  })
  await index.start()
  other = { db, index }
  await expect.poll(ask).toMatchObject({ patch_available: true })
})
afterEach(async () => {
  await other.index.stop()
  await other.db.destroy()
  await proxy.stop()
})

async function ask() {
  const place = { channel: 'stable', platform: 'android', arch: 'aarch64' } as const
  const { text } = await other.index.answer({ app_id: appId, release_version: '1', ...place })
  return JSON.parse(text)
}

async function expectChangeWithinSecond() {
  const startedAt = performance.now()
  await owner.api.rollBackPatch({ params: { appId, releaseId, patchId } })
  await expect.poll(ask, { timeout: 3000, interval: 5 }).toMatchObject({ rolled_back_patch_numbers: [1] })
  const ms = performance.now() - startedAt
  await owner.api.rollForwardPatch({ params: { appId, releaseId, patchId } })
  await expect.poll(ask, { timeout: 3000, interval: 5 }).toMatchObject({ patch_available: true })
  expect(ms).toBeLessThan(1000)
}

describe.each(['refuse', 'swallow'] as const)('an instance whose notifications a network begins to %s', (mode) => {
  it('sees a change within a second, at once and later', async () => {
    proxy.setMode(mode)
    await expectChangeWithinSecond()
    await expectChangeWithinSecond()
    proxy.setMode('pass')
    await expectChangeWithinSecond()
  })
})
