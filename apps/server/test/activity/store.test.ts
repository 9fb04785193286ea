import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startOutage } from '../support/outage.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

let service: TestService
let appId: string

beforeAll(async () => {
  service = await createTestService()
})
beforeEach(async () => {
  appId = await createTestApp(await service.createAccount())
})
afterAll(() => service.stop())

const store = () => service.deps.activityStore

async function importLines(lines: object[]) {
  return await store().importObservations({
    appId,
    bytes: (async function* () {
      yield Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    })(),
  })
}

function line(client: number, time: string, patch: number | null = null, release: string | null = '1.0.0+1') {
  return {
    client_id: `0000000${client}-0000-4000-8000-000000000000`,
    platform: 'android',
    arch: 'aarch64',
    release_version: release,
    patch_number: patch,
    time,
  }
}

async function check(client: string, fields: object = {}) {
  await service.client().checkPatch({
    body: {
      app_id: appId,
      channel: 'stable',
      release_version: '1.0.0+1',
      platform: 'android',
      arch: 'aarch64',
      client_id: client,
      ...fields,
    },
  })
}

describe('the first time', () => {
  const findFirst = () => store().findFirstTime({ appId })
  const findStored = async () => {
    const apps = service.deps.db.selectFrom('activity_apps').select('first_ms').where('app_id', '=', appId)
    return (await apps.executeTakeFirst())?.first_ms
  }
  const at = (time: string) => Date.parse(time)

  it('is that of the device which was seen first, also when that is learned later, or forgotten', async () => {
    const times = ['2026-11-18T10:00:00.500Z', '2026-11-17T10:00:00.250Z', '2026-11-19T10:00:00.000Z'] as const
    expect(await findFirst()).toBeUndefined()
    await importLines([line(1, times[0])])
    expect([await findFirst(), await findStored()]).toEqual([at(times[0]), at(times[0])])
    await importLines([line(2, times[1]), line(3, times[2])])
    expect([await findFirst(), await findStored()]).toEqual([at(times[1]), at(times[1])])
    await store().removeDevice({ appId, clientId: line(2, times[1]).client_id })
    expect([await findStored(), await findFirst()]).toEqual([null, at(times[0])])
    await importLines([line(4, times[2])])
    expect([await findFirst(), await findStored()]).toEqual([at(times[0]), at(times[0])])
  })
})

describe('the store of device activity', () => {
  it('counts imported devices, each line once', async () => {
    const lines = [
      line(1, '2026-11-01T10:00:00Z'),
      line(1, '2026-11-01T10:30:00.500Z', 1),
      line(2, '2026-11-01T11:00:00Z', 2),
      line(3, '2026-11-02T00:00:00Z', 2, null),
    ]
    expect(await importLines(lines)).toEqual({ accepted: 4, duplicates: 0, rejected: [], rejectedCount: 0 })
    expect(await importLines(lines)).toMatchObject({ accepted: 0, duplicates: 4 })
    const from = Date.parse('2026-11-01')
    expect(
      await store().countDevices({
        appId,
        spans: [
          { fromMs: from, toMs: from + dayMs },
          { fromMs: from, toMs: from + 2 * dayMs },
          { fromMs: from + 11 * hourMs, toMs: from + 30 * hourMs },
        ],
        groupBy: 'release_version',
      }),
    ).toMatchObject([{ devices: 2 }, { devices: 3 }, { devices: 2 }])
    expect(
      await store().countAdoption({
        appId,
        releaseVersion: '1.0.0+1',
        patches: [
          { number: 1, platforms: ['android'] },
          { number: 2, platforms: ['ios'] },
        ],
        spans: [{ fromMs: from, toMs: from + dayMs }],
      }),
    ).toEqual([[{ devices: 2, target: 2 }], [{ devices: 1, target: 0 }]])
    expect(await store().countVersions({ appId, sinceMs: from })).toEqual([
      { releaseVersion: null, devices: 1 },
      { releaseVersion: '1.0.0+1', devices: 2 },
    ])
    expect(await store().findFirstTime({ appId })).toBe(from + 10 * hourMs)
    expect((await store().countHourly({ appId, fromMs: from, toMs: from + dayMs })).slice(9, 13)).toEqual([0, 1, 1, 0])
  })

  it('counts checks that were answered, and still does after a restart', async () => {
    await check('a')
    await check('b', { current_patch_number: 3 })
    await check('b')
    const hour = Math.floor(Date.now() / hourMs) * hourMs
    const ask = async () => {
      await service.deps.recorder.flush()
      return await store().countAdoption({
        appId,
        releaseVersion: '1.0.0+1',
        patches: [{ number: 1, platforms: ['android'] }],
        spans: [{ fromMs: hour, toMs: hour + hourMs }],
      })
    }
    expect(await ask()).toEqual([[{ devices: 1, target: 2 }]])
    await service.restart()
    expect(await ask()).toEqual([[{ devices: 1, target: 2 }]])
    await check('c')
    expect(await ask()).toEqual([[{ devices: 1, target: 3 }]])
  })

  it('forgets a device', async () => {
    await importLines([line(1, '2026-11-01T10:00:00Z'), line(2, '2026-11-01T10:00:00Z')])
    const from = Date.parse('2026-11-01')
    const ask = () => store().countDevices({ appId, spans: [{ fromMs: from, toMs: from + dayMs }] })
    expect(await ask()).toMatchObject([{ devices: 2 }])
    const { client_id: clientId } = line(1, '')
    expect(await store().removeDevice({ appId, clientId })).toBe(true)
    expect(await ask()).toMatchObject([{ devices: 1 }])
    expect(await store().removeDevice({ appId, clientId })).toBe(false)
    await store().keepRetention()
    expect(await ask()).toMatchObject([{ devices: 1 }])
    await importLines([line(1, '2026-11-01T10:00:01Z')])
    expect(await ask()).toMatchObject([{ devices: 2 }])
  })

  it('refuses more questions than can wait, and answers the next', async () => {
    await importLines([line(1, '2026-11-01T10:00:00Z')])
    const from = Date.parse('2026-11-01')
    const ask = () => store().countDevices({ appId, spans: [{ fromMs: from, toMs: from + dayMs }] })
    const outcomes = await Promise.allSettled(Array.from({ length: 300 }, ask))
    const refusals = outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason)
    expect(refusals.length).toBeGreaterThan(200)
    for (const refusal of refusals) expect(refusal).toMatchObject({ code: 'unavailable', retryAfterSeconds: 2 })
    expect(await ask()).toMatchObject([{ devices: 1 }])
  })

  it('refuses questions while the database is away, and answers afterwards', async () => {
    await importLines([line(1, '2026-11-01T10:00:00Z')])
    const from = Date.parse('2026-11-01')
    const ask = () => store().countDevices({ appId, spans: [{ fromMs: from, toMs: from + dayMs }] })
    const outage = await startOutage(service)
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable' })
    await expect(importLines([line(2, '2026-11-01T10:00:00Z')])).rejects.toMatchObject({ code: 'unavailable' })
    await outage.end()
    await expect.poll(() => importLines([line(2, '2026-11-01T10:00:00Z')]).catch(() => undefined)).toBeDefined()
    expect(await ask()).toMatchObject([{ devices: 2 }])
  })
})
