import type { PatchEvent } from '@godwit/contract'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createEventQueue, type EventQueue } from '../../src/activity/event-queue.ts'
import type { ReceivedEvent } from '../../src/devices/queries.ts'
import { startOutage } from '../support/outage.ts'
import { createTestApp } from '../support/publishing.ts'
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

async function listEvents() {
  // What was answered is durable, but a slow database may not have it yet.
  await service.deps.recorder.flush().catch(() => undefined)
  return await service.deps.db
    .selectFrom('device_events')
    .selectAll()
    .where('app_id', '=', appId)
    .orderBy('id')
    .execute()
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

  it('answers 204 while the database is away, and stores the event afterwards under the time at which it came', async () => {
    await report()
    const sentAt = Date.now()
    const outage = await startOutage(service)
    await report({ client_id: 'device-9' })
    const answeredAt = Date.now()
    await outage.end()
    await expect.poll(listEvents, { timeout: 10_000 }).toHaveLength(2)
    const received = (await listEvents())[1]?.received_at.getTime()
    expect(received).toBeGreaterThanOrEqual(sentAt)
    expect(received).toBeLessThanOrEqual(answeredAt)
  })
})

describe('the queue of events', () => {
  const storeMany = (events: EventQueue, clients: string, count: number) =>
    Array.from({ length: count }, (_, index) => events.store(event({ client_id: `${clients}-${index}` })))
  const clock = () => new Date()

  it('is written before it stops, and takes nothing afterwards', async () => {
    const written: ReceivedEvent[] = []
    const events = createEventQueue({ write: async (group) => void written.push(...group), clock })
    const stored = Promise.all(storeMany(events, 'last', 1500))
    events.stop()
    await stored
    expect(written).toHaveLength(1500)
    await expect(events.store(event())).rejects.toMatchObject({ code: 'unavailable' })
  })

  it('refuses what it cannot hold, those that waited too long, and goes on afterwards', async () => {
    const { promise: never, resolve: answer } = Promise.withResolvers<void>()
    let isStuck = true
    const events = createEventQueue({ write: () => (isStuck ? never : Promise.resolve()), clock })
    const early = Promise.allSettled(storeMany(events, 'early', 10_000))
    await expect(events.store(event())).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 5 })
    expect((await early).every(({ status }) => status === 'rejected')).toBe(true)
    await expect(events.store(event())).rejects.toMatchObject({ code: 'unavailable' })
    isStuck = false
    answer()
    await never
    await expect.poll(() => events.store(event()).then(() => 'stored')).toBe('stored')
  })
})
