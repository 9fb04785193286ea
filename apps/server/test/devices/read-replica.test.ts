import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { checkReplica } from '../../src/doctor/check-replica.ts'
import { createTestApp, createTestRelease, findChannelId, uploadTestPatchArtifact } from '../support/publishing.ts'
import { queryValue } from '../support/replicated-postgres.ts'
import { type ReplicatedService, startReplicatedService } from '../support/replicated-service.ts'

let replicated: ReplicatedService

beforeAll(async () => {
  replicated = await startReplicatedService()
}, 60_000)
afterAll(() => replicated?.stop())
afterEach(() => replicated.mend())

type Published = { appId: string; releaseId: number; patchId: number }

/** An app that no device has asked about. */
async function publishApp(): Promise<Published> {
  const { owner } = replicated
  const { api } = owner
  const appId = await createTestApp(owner)
  const releaseId = await createTestRelease(api, appId, '1')
  const { id: patchId } = await api.createPatch({ params: { appId }, body: { release_id: releaseId } })
  await uploadTestPatchArtifact(api, { appId, patchId })
  const channelId = await findChannelId(api, appId)
  await api.promotePatch({ params: { appId }, body: { patch_id: patchId, channel_id: channelId } })
  return { appId, releaseId, patchId }
}

function check({ appId }: Published) {
  const place = { channel: 'stable', platform: 'android', arch: 'aarch64' } as const
  return replicated.service.client().checkPatch({ body: { app_id: appId, release_version: '1', ...place } })
}

async function waitForReplica({ appId }: Published): Promise<void> {
  const text = `select device_version from apps where id = '${appId}'`
  const version = await queryValue(replicated.postgres.primaryUrl, text)
  await expect
    .poll(() => queryValue(replicated.postgres.replicaUrl, text), { timeout: 5000, interval: 20 })
    .toBe(version)
  await replicated.waitUntilUp()
}

function countReads() {
  return { ...replicated.service.deps.deviceIndex.measure().replicaReads }
}

const examine = async () => (await checkReplica(replicated.postgres.replicaUrl, replicated.postgres.primaryUrl))[0]

describe('an instance with a read replica', () => {
  it('reads there what devices are answered from', async () => {
    const app = await publishApp()
    await waitForReplica(app)
    const before = countReads()
    expect(await check(app)).toMatchObject({ patch_available: true, patch: { number: 1 } })
    expect(countReads()).toEqual({ ...before, used: (before.used ?? 0) + 1 })
    expect(await examine()).toMatchObject({ result: 'ok', found: expect.stringMatching(/^it is \d+ bytes behind$/) })
  })

  it('shows devices a change at once, and an app that is new, while the replica lags', async () => {
    const known = await publishApp()
    await waitForReplica(known)
    expect(await check(known)).toMatchObject({ patch_available: true })
    await replicated.whileReplicaLags(async () => {
      const before = countReads()
      const params = { appId: known.appId, releaseId: known.releaseId, patchId: known.patchId }
      await replicated.owner.api.rollBackPatch({ params })
      expect(await check(known)).toEqual({ patch_available: false, rolled_back_patch_numbers: [1] })
      const created = await publishApp()
      expect(await check(created)).toMatchObject({ patch_available: true })
      expect(await check(created)).toMatchObject({ patch_available: true })
      expect(countReads()).toEqual({ ...before, behind: (before.behind ?? 0) + 2 })
    })
  })

  it('answers about apps that were not asked for before while the primary is away', async () => {
    const app = await publishApp()
    await waitForReplica(app)
    replicated.primary.setMode('refuse')
    await expect.poll(replicated.readMetric('godwit_database_up'), { timeout: 5000 }).toBe(0)
    expect(await check(app)).toMatchObject({ patch_available: true })
  })

  it('takes no app for gone, and tells nothing old, while the primary is away and the replica lags', async () => {
    const old = await publishApp()
    await waitForReplica(old)
    await replicated.whileReplicaLags(async () => {
      const created = await publishApp()
      await replicated.owner.api.rollBackPatch({ params: old })
      replicated.primary.setMode('refuse')
      await expect.poll(replicated.readMetric('godwit_database_up'), { timeout: 5000 }).toBe(0)
      await expect(check(created)).rejects.toMatchObject({ status: 503 })
      await expect(check(old)).rejects.toMatchObject({ status: 503 })
      replicated.primary.setMode('pass')
      await expect
        .poll(() => check(created).catch(() => undefined), { timeout: 10_000 })
        .toMatchObject({
          patch_available: true,
        })
    })
  })

  it.each(['refuse', 'swallow'] as const)(
    'shows changes within a second when the replica begins to %s',
    async (mode) => {
      const app = await publishApp()
      await waitForReplica(app)
      expect(await check(app)).toMatchObject({ patch_available: true })
      replicated.replica.setMode(mode)
      const startedAt = performance.now()
      await replicated.owner.api.rollBackPatch({ params: app })
      expect(await check(app)).toEqual({ patch_available: false, rolled_back_patch_numbers: [1] })
      expect(performance.now() - startedAt).toBeLessThan(1000)
      await expect.poll(replicated.readMetric('godwit_replica_up'), { timeout: 5000 }).toBe(0)
    },
  )

  it('does without a replica that was killed, and reads there again once it is back', async () => {
    const [first, second] = [await publishApp(), await publishApp()]
    await waitForReplica(second)
    await replicated.postgres.killReplica()
    expect(await check(first)).toMatchObject({ patch_available: true })
    await expect
      .poll(() => queryValue(replicated.postgres.replicaUrl, 'select 1').catch(() => 0), { timeout: 15_000 })
      .toBe(1)
    await waitForReplica(second)
    const { used = 0 } = countReads()
    expect(await check(second)).toMatchObject({ patch_available: true })
    expect(countReads().used).toBe(used + 1)
  })

  it('reads no more of a replica that was promoted: it goes its own way', async () => {
    const app = await publishApp()
    await waitForReplica(app)
    await queryValue(replicated.postgres.replicaUrl, 'select pg_promote()')
    await expect.poll(replicated.readMetric('godwit_replica_up'), { timeout: 5000 }).toBe(0)
    const { used } = countReads()
    expect(await check(app)).toMatchObject({ patch_available: true })
    expect(countReads().used).toBe(used)
    expect(await examine()).toMatchObject({ result: 'failure', found: 'it is no standby, and not read' })
    expect((await checkReplica(inject('postgresUrl'), replicated.postgres.primaryUrl))[0]?.found).toContain(
      'another database',
    )
  })
})
