import type { PatchEvent } from '@godwit/contract'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createDeviceEvents, type DeviceEvents } from '../../src/devices/device-events.ts'
import { createTestApp } from '../support/publishing.ts'
import { runOnServer } from '../support/test-database.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

let service: TestService
let appId: string

beforeAll(async () => {
  service = await createTestService()
})
beforeEach(async () => {
  appId = await createTestApp(await service.createAccount())
})
afterAll(() => service.stop())

function event(overrides: Partial<PatchEvent> = {}): PatchEvent {
  return {
    app_id: appId,
    arch: 'aarch64',
    client_id: 'device-1',
    type: '__patch_install__',
    patch_number: 3,
    platform: 'android',
    release_version: '1.0.0+1',
    timestamp: 1_790_000_000,
    message: null,
    ...overrides,
  }
}

function report(overrides: Partial<PatchEvent> = {}) {
  return service.client().createPatchEvent({ body: { event: event(overrides) } })
}

function listEvents() {
  return service.deps.db.selectFrom('device_events').selectAll().where('app_id', '=', appId).orderBy('id').execute()
}

describe('POST /api/v1/patches/events', () => {
  it('has stored the event when it answers 204', async () => {
    const response = await fetch(`${service.baseUrl}/api/v1/patches/events`, {
      method: 'POST',
      body: JSON.stringify({ event: event({ message: 'crash_recovery: patch 3 failed to boot' }) }),
    })
    expect([response.status, await response.text()]).toEqual([204, ''])
    expect(await listEvents()).toMatchObject([
      {
        client_id: 'device-1',
        type: '__patch_install__',
        patch_number: 3,
        release_version: '1.0.0+1',
        occurred_at: new Date(1_790_000_000_000),
        message: 'crash_recovery: patch 3 failed to boot',
      },
    ])
  })

  it('stores the same event once, however often and whenever it is sent', async () => {
    await Promise.all(Array.from({ length: 20 }, () => report()))
    await report()
    expect(await listEvents()).toHaveLength(1)
    await report({ timestamp: 1_790_000_001 })
    await report({ type: '__patch_download__' })
    await report({ client_id: 'device-2' })
    expect(await listEvents()).toHaveLength(4)
  })

  it('takes types that it does not know, and events without a message', async () => {
    await report({ type: '__something_new__', message: undefined })
    expect(await listEvents()).toMatchObject([{ type: '__something_new__', message: null }])
  })

  it('stores many at once without losing one', async () => {
    await Promise.all(Array.from({ length: 500 }, (_, index) => report({ client_id: `device-${index}` })))
    expect(await listEvents()).toHaveLength(500)
  })

  it('takes an event of an app that does not exist, and stores nothing', async () => {
    await report({ app_id: 'gone' })
    const rows = await service.deps.db.selectFrom('device_events').select('id').where('app_id', '=', 'gone').execute()
    expect(rows).toEqual([])
  })

  it('is not failed by the event of an app that is deleted at the same time', async () => {
    const owner = await service.createAccount()
    const doomed = await createTestApp(owner)
    const doomedReports = Array.from({ length: 20 }, (_, index) => report({ app_id: doomed, client_id: `d-${index}` }))
    await Promise.all([...doomedReports, report(), owner.api.deleteApp({ params: { appId: doomed } })])
    expect(await listEvents()).toHaveLength(1)
  })

  it('does not make other devices wait for an app that is being deleted', async () => {
    const doomed = await createTestApp(await service.createAccount())
    await service.deps.db.transaction().execute(async (trx) => {
      await trx.selectFrom('apps').select('id').where('id', '=', doomed).forUpdate().execute()
      await Promise.all([report({ app_id: doomed }), report()])
    })
    expect(await listEvents()).toHaveLength(1)
  })

  it('answers 503 with Retry-After while the database is away, and stores again afterwards', async () => {
    await report()
    const name = new URL(service.connectionString).pathname.slice(1)
    await runOnServer(`alter database ${name} allow_connections false`)
    await runOnServer(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
    const refused = await fetch(`${service.baseUrl}/api/v1/patches/events`, {
      method: 'POST',
      body: JSON.stringify({ event: event({ client_id: 'device-9' }) }),
    })
    await runOnServer(`alter database ${name} allow_connections true`)
    expect(refused.status).toBe(503)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await refused.json()).toMatchObject({ code: 'unavailable' })
    await expect
      .poll(
        () =>
          report({ client_id: 'device-9' }).then(
            () => true,
            () => false,
          ),
        { timeout: 10_000 },
      )
      .toBe(true)
    expect(await listEvents()).toHaveLength(2)
  })
})

describe('the queue of events', () => {
  const storeMany = (events: DeviceEvents, clients: string, count: number) =>
    Array.from({ length: count }, (_, index) => events.store(event({ client_id: `${clients}-${index}` })))

  it('is stored before the service stops, and takes nothing afterwards', async () => {
    const events = createDeviceEvents({ db: service.deps.db, log: service.deps.log })
    const stored = Promise.all(storeMany(events, 'last', 1500))
    await events.stop()
    expect(await listEvents()).toHaveLength(1500)
    await stored
    await expect(events.store(event())).rejects.toMatchObject({ code: 'unavailable' })
  })

  it('refuses what a slow database cannot take, at once when it is full or stuck, and goes on afterwards', async () => {
    const events = createDeviceEvents({ db: service.deps.db, log: service.deps.log })
    const outcomes: Promise<PromiseSettledResult<void>[]>[] = []
    await service.deps.db.transaction().execute(async (trx) => {
      await sql`lock table device_events in exclusive mode`.execute(trx)
      outcomes.push(Promise.allSettled(storeMany(events, 'early', 10_000)))
      await expect(events.store(event())).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 5 })
      const early = await outcomes[0]
      expect(early?.every(({ status }) => status === 'rejected')).toBe(true)
      await expect(events.store(event())).rejects.toMatchObject({ code: 'unavailable' })
    })
    await expect
      .poll(() =>
        events.store(event({ client_id: 'later' })).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true)
    await events.stop()
  })
})
