import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compactApp } from '../../src/activity/store/compact-app.ts'
import { keepRetention } from '../../src/activity/store/retention.ts'
import { listPartitions } from '../../src/db/month-partitions.ts'
import { ask, createStoreHarness, type StoreHarness } from './store-harness.ts'

const dayMs = 24 * 3_600_000
const today = Date.parse('2026-11-21')
const daysAgo = (days: number) => today - days * dayMs

let harness: StoreHarness
beforeEach(async () => {
  harness = await createStoreHarness()
})
afterEach(() => harness.close())

async function listAllPartitions(): Promise<string[]> {
  const tables = ['activity_days', 'activity_hours'] as const
  return (await Promise.all(tables.map((table) => listPartitions(harness.db, { table })))).flat()
}

describe('retention', () => {
  it('drops whole months, hours sooner than days, and forgets no device', async () => {
    let now = daysAgo(330)
    const process = harness.start({ now: () => now })
    for (const days of [330, 200, 60, 0]) {
      now = daysAgo(days)
      await harness.accept([{ device: days, timeMs: daysAgo(days) }])
      await compactApp(process.context, { appId: harness.appId, skipLocked: false })
    }
    expect(await listAllPartitions()).toHaveLength(8)
    await keepRetention(process.context)
    expect(await listAllPartitions()).toEqual([
      'activity_days_2025_12',
      'activity_days_2026_05',
      'activity_days_2026_09',
      'activity_days_2026_11',
      'activity_hours_2026_09',
      'activity_hours_2026_11',
    ])
    now = today + 320 * dayMs
    await keepRetention(process.context)
    expect(await listAllPartitions()).toEqual(['activity_days_2026_09', 'activity_days_2026_11'])
    const span = { fromMs: daysAgo(340), toMs: today + dayMs }
    expect(await ask(harness.start({ now: () => now }), harness.appId, span)).toMatchObject({
      devices: 2,
      versions: [{ releaseVersion: '1.0.0+1', devices: 4 }],
    })
  })

  it('stores no hours or days that would be dropped again', async () => {
    const process = harness.start({ now: () => today })
    await harness.accept([
      { device: 1, timeMs: daysAgo(91) },
      { device: 2, timeMs: daysAgo(401) },
      { device: 3, timeMs: daysAgo(89) },
    ])
    await compactApp(process.context, { appId: harness.appId, skipLocked: false })
    const hours = await harness.db.selectFrom('activity_hours').select('start').execute()
    const days = await harness.db.selectFrom('activity_days').select('start').orderBy('start').execute()
    expect(hours).toEqual([{ start: new Date(daysAgo(89)) }])
    expect(days).toEqual([{ start: new Date(daysAgo(91)) }, { start: new Date(daysAgo(89)) }])
  })

  it('takes no more of what anybody can invent than an app may have', async () => {
    const process = harness.start({ now: () => today })
    await harness.accept(
      Array.from({ length: 21_000 }, (_, patch) => ({ device: patch, timeMs: today, context: { running: patch } })),
    )
    await compactApp(process.context, { appId: harness.appId, skipLocked: false })
    expect(process.context.dropped).toBe(1000)
    await harness.accept([{ device: 30_000, timeMs: today, context: { running: 7 } }])
    const span = { fromMs: today, toMs: today + dayMs }
    expect(await ask(process, harness.appId, span)).toMatchObject({ devices: 20_001 })
  })

  it('counts releases of the app, however many versions were invented', async () => {
    const process = harness.start({ now: () => today })
    await harness.accept(
      Array.from({ length: 1200 }, (_, device) => ({ device, timeMs: today, context: { release: `0.${device}` } })),
    )
    await compactApp(process.context, { appId: harness.appId, skipLocked: false })
    expect(process.context.dropped).toBe(201)
    await harness.db
      .insertInto('releases')
      .values({ app_id: harness.appId, version: '1.0.0+1', flutter_revision: 'f' })
      .execute()
    await harness.accept([
      { device: 2000, timeMs: today },
      { device: 2001, timeMs: today, context: { release: 'invented' } },
    ])
    const answer = await ask(process, harness.appId, { fromMs: today, toMs: today + dayMs })
    expect(answer).toMatchObject({ devices: 1000 })
    expect(answer?.versions).toContainEqual({ releaseVersion: '1.0.0+1', devices: 1 })
    expect(process.context.dropped).toBe(202)
  })

  it('counts the devices that are known, and no new ones, when an app has as many as it may', async () => {
    const process = harness.start({ now: () => today, maxDevices: 3 })
    const seen = (timeMs: number) => Array.from({ length: 5 }, (_, device) => ({ device, timeMs }))
    await harness.accept(seen(daysAgo(1)))
    await compactApp(process.context, { appId: harness.appId, skipLocked: false })
    await harness.accept(seen(today))
    const answer = await ask(process, harness.appId, { fromMs: today, toMs: today + dayMs })
    expect(answer).toMatchObject({ devices: 3, versions: [{ releaseVersion: '1.0.0+1', devices: 3 }] })
    expect(process.context.dropped).toBe(4)
  })
})
