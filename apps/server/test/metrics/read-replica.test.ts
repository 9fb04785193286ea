import { sql } from 'kysely'
import pino from 'pino'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ActivityStore } from '../../src/activity/activity-store.ts'
import { createActivityStore } from '../../src/activity/store/create-activity-store.ts'
import type { ReplicaReads } from '../../src/db/open-replica.ts'
import { dayMs, hourMs } from '../../src/time.ts'
import { checkOf, clientOf } from '../activity/harness.ts'
import { readSamples } from '../service/read-metrics.ts'
import { createTestApp } from '../support/publishing.ts'
import { queryValue } from '../support/replicated-postgres.ts'
import { type ReplicatedService, startReplicatedService } from '../support/replicated-service.ts'

let replicated: ReplicatedService
/** Of an instance that has no replica. */
let primaryStore: ActivityStore

beforeAll(async () => {
  replicated = await startReplicatedService()
  const { config, clock } = replicated.service.deps
  primaryStore = createActivityStore({
    connectionString: replicated.postgres.primaryUrl,
    config: { ...config, databaseReplicaUrl: undefined },
    clock,
    log: pino({ level: 'silent' }),
  })
  await countAll(store(), await createTestApp(replicated.owner))
}, 60_000)
afterAll(async () => {
  await primaryStore?.stop()
  await replicated?.stop()
})
afterEach(() => replicated.mend())

const store = () => replicated.service.deps.activityStore

/** An app and the check of a device, which is in the database. */
async function recordApp(): Promise<string> {
  const appId = await createTestApp(replicated.owner)
  await recordDevice(appId, 1)
  return appId
}

async function recordDevice(appId: string, device: number, release = '1.0.0+1'): Promise<void> {
  const { service } = replicated
  await service.client().checkPatch({ body: checkOf(appId, device, { release_version: release }) })
  await service.deps.recorder.flush()
}

/** Until the replica has all that is counted, and is read. No bitmap is in memory then that was not before. */
async function waitForReplica(appId: string): Promise<void> {
  await store().compact({ appId })
  const text = `select seq from activity_apps where app_id = '${appId}'`
  const seq = await queryValue(replicated.postgres.primaryUrl, text)
  const { replicaUrl } = replicated.postgres
  await expect.poll(() => queryValue(replicaUrl, text).catch(() => undefined), { timeout: 15_000 }).toBe(seq)
  const { used } = measure()
  const countUsed = async () => {
    await store().findFirstTime({ appId })
    return measure().used
  }
  await expect.poll(countUsed, { timeout: 15_000, interval: 50 }).toBeGreaterThan(used)
}

/** Of `countAll`. */
const questions = 6

async function countAll(asked: ActivityStore, appId: string) {
  const hour = Date.now() - (Date.now() % hourMs)
  const day = hour - (hour % dayMs)
  const spans = [
    { fromMs: hour, toMs: hour + hourMs },
    { fromMs: day - dayMs, toMs: day + dayMs },
  ]
  const patches = [{ number: 0, platforms: ['android' as const] }]
  const releases = await asked.countVersions({ appId, sinceMs: 0 })
  return {
    releases: releases.toSorted((a, b) => String(a.releaseVersion).localeCompare(String(b.releaseVersion))),
    devices: await asked.countDevices({ appId, spans, groupBy: 'platform' }),
    adoption: await asked.countAdoption({ appId, releaseVersion: '1.0.0+1', patches, spans }),
    newDevices: await asked.countNewDevices({ appId, spans }),
    hourly: await asked.countHourly({ appId, fromMs: day, toMs: day + dayMs }),
    firstMs: await asked.findFirstTime({ appId }),
  }
}
/** As `countAll` has them. */
async function countDevices(appId: string): Promise<number> {
  const fromMs = Date.now() - (Date.now() % dayMs) - dayMs
  const [counted] = await store().countDevices({ appId, spans: [{ fromMs, toMs: fromMs + 2 * dayMs }] })
  return counted?.devices ?? 0
}

const measure = () => store().measure().replicaReads

async function expectReads(more: Partial<ReplicaReads>, run: () => Promise<void>): Promise<void> {
  const before = measure()
  await run()
  const { used = 0, behind = 0, failed = 0 } = more
  expect(measure()).toEqual({
    used: before.used + used,
    behind: before.behind + behind,
    failed: before.failed + failed,
  })
}

/** Ends with the bitmaps of hours and days locked on the replica, and only there: whoever reads them waits. */
async function lockOnReplica(): Promise<void> {
  const { replicaUrl } = replicated.postgres
  const { db } = replicated.service.deps
  await db.transaction().execute(async (trx) => {
    await sql`lock table activity_hours, activity_days in access exclusive mode`.execute(trx)
    // What is not committed goes to the replica with what is.
    await sql`create table if not exists moved ()`.execute(db)
    await sql`drop table moved`.execute(db)
    const countLocks = () =>
      queryValue(replicaUrl, `select count(*)::int from pg_locks where relation = 'activity_days'::regclass`)
    await expect.poll(countLocks, { timeout: 10_000, interval: 20 }).toBeGreaterThan(0)
    await queryValue(replicaUrl, 'select pg_wal_replay_pause()')
  })
}

/** Processes of the replica that wait for the lock. */
async function findBlocked(): Promise<number | undefined> {
  const text = `select pid from pg_stat_activity where application_name = 'godwit' and wait_event_type = 'Lock'`
  return (await queryValue(replicated.postgres.replicaUrl, text)) as number | undefined
}

describe('metrics with a read replica', () => {
  it('are read there, with the answers of the primary, and /metrics tells so', async () => {
    const appId = await recordApp()
    for (let device = 2; device < 40; device += 1) await recordDevice(appId, device, `1.${device % 3}.0+1`)
    await waitForReplica(appId)
    await expectReads({ used: questions }, async () => {
      const answers = await countAll(store(), appId)
      expect(answers).toEqual(await countAll(primaryStore, appId))
      expect(answers.devices[1]?.devices).toBe(39)
    })
    const { used, behind, failed } = measure()
    expect(await readSamples(replicated.service.baseUrl)).toMatchObject({
      'godwit_replica_reads_total{reader="metrics",result="used"}': used,
      'godwit_replica_reads_total{reader="metrics",result="behind"}': behind,
      'godwit_replica_reads_total{reader="metrics",result="failed"}': failed,
    })
  })

  it('count what another instance has counted and removed, whichever server each question is answered by', async () => {
    const appId = await recordApp()
    for (let round = 1; round < 6; round += 1) {
      await recordDevice(appId, 2 * round)
      await recordDevice(appId, 2 * round + 1)
      await primaryStore.compact({ appId })
      await primaryStore.removeDevice({ appId, clientId: clientOf(2 * round) })
      if (round % 2 === 0) replicated.replica.setMode('refuse')
      else replicated.replica.setMode('pass')
      expect(await countAll(store(), appId)).toEqual(await countAll(primaryStore, appId))
      expect(await countDevices(appId)).toBe(round + 1)
    }
  })

  it('are right within a second more while the replica lags, and are read there again when it does not', async () => {
    const appId = await recordApp()
    await waitForReplica(appId)
    await replicated.whileReplicaLags(async () => {
      await expectReads({ used: 1 }, async () => expect(await countDevices(appId)).toBe(1))
      await recordDevice(appId, 2)
      await expectReads({ behind: 1 }, async () => {
        const startedAt = performance.now()
        expect(await countDevices(appId)).toBe(2)
        expect(performance.now() - startedAt).toBeLessThan(1000)
      })
    })
    await waitForReplica(appId)
    await expectReads({ used: questions }, async () =>
      expect(await countAll(store(), appId)).toEqual(await countAll(primaryStore, appId)),
    )
  })

  it('lack a device from when it is deleted, also while the replica has it', async () => {
    const appId = await recordApp()
    await recordDevice(appId, 2)
    await waitForReplica(appId)
    expect(await countDevices(appId)).toBe(2)
    await replicated.whileReplicaLags(async () => {
      await replicated.owner.api.deleteDevice({ params: { appId, clientId: clientOf(1) } })
      expect(await countDevices(appId)).toBe(1)
      expect(await countAll(store(), appId)).toEqual(await countAll(primaryStore, appId))
    })
    await waitForReplica(appId)
    await expectReads({ used: 1 }, async () => expect(await countDevices(appId)).toBe(1))
  })

  it.each(['pg_cancel_backend', 'pg_terminate_backend', 'swallow'] as const)(
    'start again on the primary when the replica fails in the middle of an answer: %s',
    async (fault) => {
      const appId = await recordApp()
      await recordDevice(appId, 2)
      await waitForReplica(appId)
      await lockOnReplica()
      try {
        await expectReads({ failed: 1 }, async () => {
          const counting = countDevices(appId)
          await expect.poll(findBlocked, { timeout: 5000, interval: 20 }).toBeGreaterThan(0)
          if (fault === 'swallow') replicated.replica.setMode('swallow')
          else await queryValue(replicated.postgres.replicaUrl, `select ${fault}(${await findBlocked()})`)
          expect(await counting).toBe(2)
        })
      } finally {
        await queryValue(replicated.postgres.replicaUrl, 'select pg_wal_replay_resume()')
      }
    },
  )

  it.each(['refuse', 'swallow'] as const)(
    'are right within a second more when the replica begins to %s',
    async (mode) => {
      const appId = await recordApp()
      await waitForReplica(appId)
      replicated.replica.setMode(mode)
      await expectReads({ failed: 1 }, async () => {
        const startedAt = performance.now()
        expect(await countDevices(appId)).toBe(1)
        expect(performance.now() - startedAt).toBeLessThan(1000)
      })
    },
  )

  it('do without a replica that was killed, and are read there again once it is back', async () => {
    const appId = await recordApp()
    await waitForReplica(appId)
    await replicated.postgres.killReplica()
    await recordDevice(appId, 2)
    expect(await countDevices(appId)).toBe(2)
    await waitForReplica(appId)
  })

  it('are not read of a replica that was promoted: it goes its own way', async () => {
    const appId = await recordApp()
    await waitForReplica(appId)
    await queryValue(replicated.postgres.replicaUrl, 'select pg_promote()')
    const { used } = measure()
    expect(await countDevices(appId)).toBe(1)
    expect(measure().used).toBe(used)
  })
})
