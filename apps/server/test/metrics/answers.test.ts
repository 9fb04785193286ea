import type { Client } from '@godwit/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ActivityStore } from '../../src/activity/activity-store.ts'
import { createTestApp, createTestRelease, uploadTestPatchArtifact } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { serveMetrics } from './serve-metrics.ts'

const now = '2026-03-18T12:34:56.789Z'
const hourMs = 3_600_000
const dayMs = 24 * hourMs

let service: TestService
let owner: TestAccount

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
})

afterAll(async () => {
  await service.stop()
})

/** Asks the service while its store answers what the test says. */
async function ask<Answer>(store: Partial<ActivityStore>, question: (api: Client) => Promise<Answer>): Promise<Answer> {
  const metrics = await serveMetrics(service, { now, store })
  try {
    return await question(metrics.client(owner.apiKey))
  } finally {
    await metrics.stop()
  }
}

function time(value: string): number {
  return Date.parse(value)
}

describe('GET …/metrics/version-distribution', () => {
  it('has both spellings, shares of the whole, and the time that was counted', async () => {
    const appId = await createTestApp(owner)
    const asked: unknown[] = []
    const answer = await ask(
      {
        countVersions: async (input) => {
          asked.push(input)
          return [
            { releaseVersion: null, devices: 1 },
            { releaseVersion: '2.0', devices: 1 },
            { releaseVersion: '1.0', devices: 6 },
          ]
        },
      },
      (api) => api.getVersionDistribution({ params: { appId } }),
    )
    expect(asked).toEqual([{ appId, sinceMs: time(now) - 28 * dayMs }])
    const entry = (version: string | null, count: number) => ({
      release_version: version,
      releaseVersion: version,
      device_count: count,
      deviceCount: count,
      percentage: count / 8,
    })
    expect(answer).toEqual({
      entries: [entry('1.0', 6), entry('2.0', 1), entry(null, 1)],
      total_devices: 8,
      active_window_days: 28,
      range: { start: '2026-02-18T12:34:56.789Z', end: now },
      as_of: now,
    })
  })
})

describe('GET …/metrics/patch-adoption', () => {
  let appId: string

  beforeAll(async () => {
    appId = await createTestApp(owner)
    await createTestRelease(owner.api, appId, '1.0.0')
    const releaseId = await createTestRelease(owner.api, appId, '2.0.0')
    const numbers: number[] = []
    for (let count = 0; count < 3; count += 1) {
      const { id } = await owner.api.createPatch({ params: { appId }, body: { release_id: releaseId } })
      numbers.push(id)
    }
    const [first = 0, second = 0] = numbers
    await uploadTestPatchArtifact(owner.api, { appId, patchId: first }, { platform: 'ios' })
    await uploadTestPatchArtifact(owner.api, { appId, patchId: first }, { platform: 'android' })
    await uploadTestPatchArtifact(owner.api, { appId, patchId: first }, { platform: 'android', arch: 'arm' })
    // Registered, never uploaded: what the patch was built for all the same.
    const body = { platform: 'android', arch: 'aarch64', hash: 'a'.repeat(64), size: 10 } as const
    await owner.api.createPatchArtifact({ params: { appId, patchId: second }, body })
    await owner.api.rollBackPatch({ params: { appId, releaseId, patchId: second } })
  })

  it('has every patch of the newest release, by number, over the whole window', async () => {
    const asked: unknown[] = []
    const answer = await ask(
      {
        countAdoption: async (input) => {
          asked.push(input)
          return [[{ devices: 6, target: 8 }], [{ devices: 5, target: 4 }], [{ devices: 2, target: 0 }]]
        },
      },
      (api) => api.getPatchAdoption({ params: { appId }, query: { start: '2026-03-01T10:00:00Z' } }),
    )
    expect(asked).toMatchObject([
      {
        appId,
        releaseVersion: '2.0.0',
        patches: [
          { number: 1, platforms: ['android', 'ios'] },
          { number: 2, platforms: ['android'] },
          { number: 3, platforms: [] },
        ],
        spans: [{ fromMs: time('2026-03-01T10:00:00Z'), toMs: time('2026-03-18T13:00:00Z') }],
      },
    ])
    const point = (devices: number, target: number, adoption_pct: number) => [
      { period: null, devices, target, adoption_pct },
    ]
    expect(answer).toEqual({
      release_version: '2.0.0',
      is_latest: true,
      granularity: null,
      range: { start: '2026-03-01T10:00:00.000Z', end: now },
      as_of: now,
      patches: [
        {
          patch_number: 1,
          target_platforms: ['android', 'ios'],
          is_rolled_back: false,
          series: point(6, 8, 0.75),
        },
        { patch_number: 2, target_platforms: ['android'], is_rolled_back: true, series: point(5, 4, 1) },
        { patch_number: 3, target_platforms: [], is_rolled_back: false, series: point(2, 0, 0) },
      ],
    })
  })

  it('has a point for every bucket, whether or not anything was in it', async () => {
    const answer = await ask(
      {
        countAdoption: async ({ spans }) =>
          [0, 1, 2].map(() => spans.map((_, index) => ({ devices: index, target: 2 }))),
      },
      (api) =>
        api.getPatchAdoption({
          params: { appId },
          query: { granularity: 'day', start: '2026-03-01T10:00:00Z', end: '2026-03-03T10:00:00Z' },
        }),
    )
    expect(answer.patches[2]?.series).toEqual([
      { period: '2026-03-01T00:00:00.000Z', devices: 0, target: 2, adoption_pct: 0 },
      { period: '2026-03-02T00:00:00.000Z', devices: 1, target: 2, adoption_pct: 0.5 },
      { period: '2026-03-03T00:00:00.000Z', devices: 2, target: 2, adoption_pct: 1 },
    ])
    expect(answer.granularity).toBe('day')
  })

  it('is refused when it would have more points than an answer holds', async () => {
    const app = await createTestApp(owner)
    const releaseId = await createTestRelease(owner.api, app)
    const numbers = Array.from({ length: 140 }, (_, index) => ({ release_id: releaseId, number: index + 1 }))
    await service.deps.db.insertInto('patches').values(numbers).execute()
    const query = { granularity: 'hour', start: '2026-02-01T00:00:00Z', end: '2026-03-05T00:00:00Z' } as const
    const answer = ask({}, (api) => api.getPatchAdoption({ params: { appId: app }, query }))
    await expect(answer).rejects.toMatchObject({ status: 400, details: expect.stringContaining('granularity: ') })
  })

  it('says whether the release that was named is the newest', async () => {
    const named = async (release_version: string) =>
      await ask({}, (api) => api.getPatchAdoption({ params: { appId }, query: { release_version } }))
    expect(await named('1.0.0')).toMatchObject({ release_version: '1.0.0', is_latest: false, patches: [] })
    expect(await named('2.0.0')).toMatchObject({ release_version: '2.0.0', is_latest: true })
  })

  it('has zeros where nothing is left of the window', async () => {
    const query = { start: '2020-03-01T10:00:00Z', end: '2020-03-03T10:00:00Z' }
    const refuse = async () => {
      throw new Error('there is nothing to count')
    }
    const answer = await ask({ countAdoption: refuse }, (api) => api.getPatchAdoption({ params: { appId }, query }))
    expect(answer.range).toEqual({ start: '2020-03-03T00:00:00.000Z', end: '2020-03-03T00:00:00.000Z' })
    expect(answer.patches[0]?.series).toEqual([{ period: null, devices: 0, target: 0, adoption_pct: 0 }])
  })
})

describe('GET …/metrics/unique-users', () => {
  const counts = [
    {
      devices: 4,
      groups: [
        { value: '1.0', devices: 2 },
        { value: null, devices: 3 },
      ],
    },
    { devices: 0, groups: [] },
    { devices: 2, groups: [{ value: '1.0', devices: 2 }] },
  ]
  const query = { start: '2026-03-01T00:00:00Z', end: '2026-03-03T00:00:00Z' }

  it('says everything twice: at the top, and as the current window', async () => {
    const appId = await createTestApp(owner)
    const spans: unknown[] = []
    const answer = await ask(
      {
        countDevices: async (input) => {
          spans.push(input.spans)
          return input.groupBy === undefined ? [{ devices: 7, groups: [] }] : counts
        },
        findFirstTime: async () => time('2026-02-28T23:59:59.999Z'),
      },
      (api) =>
        api.getUniqueUsers({ params: { appId }, query: { ...query, granularity: 'day', group_by: 'release_version' } }),
    )
    const { as_of, granularity, previous, current, ...top } = answer
    expect(top).toEqual(current)
    expect(spans).toEqual([
      [
        { fromMs: time('2026-03-01T00:00:00Z'), toMs: time('2026-03-03T00:00:00Z') },
        { fromMs: time('2026-03-01T00:00:00Z'), toMs: time('2026-03-02T00:00:00Z') },
        { fromMs: time('2026-03-02T00:00:00Z'), toMs: time('2026-03-03T00:00:00Z') },
      ],
      [{ fromMs: time('2026-02-27T00:00:00Z'), toMs: time('2026-03-01T00:00:00Z') }],
    ])
    const series = [{ period: '2026-03-02T00:00:00.000Z', unique_users: 2 }]
    expect({ as_of, granularity, previous, current }).toEqual({
      as_of: now,
      granularity: 'day',
      current: {
        unique_users: 4,
        range: { start: '2026-03-01T00:00:00.000Z', end: '2026-03-03T00:00:00.000Z' },
        time_series: series,
        breakdown: [
          { group_by: 'release_version', group_value: '', unique_users: 3, time_series: [] },
          { group_by: 'release_version', group_value: '1.0', unique_users: 2, time_series: series },
        ],
      },
      previous: {
        unique_users: 7,
        range: { start: '2026-02-27T00:00:00.000Z', end: '2026-03-01T00:00:00.000Z' },
      },
    })
  })

  it('has neither series nor breakdown that nobody asked for', async () => {
    const appId = await createTestApp(owner)
    const answer = await ask({ countDevices: async () => counts }, (api) =>
      api.getUniqueUsers({ params: { appId }, query }),
    )
    const current = { unique_users: 4, range: answer.range }
    expect(answer).toEqual({ ...current, as_of: now, granularity: null, current, previous: null })
  })

  it('has nothing to compare with when nothing was recorded before the window', async () => {
    const appId = await createTestApp(owner)
    const firstAt = async (first: string) => {
      const findFirstTime = async () => time(first)
      const { previous } = await ask({ findFirstTime }, (api) => api.getUniqueUsers({ params: { appId }, query }))
      return previous
    }
    expect(await firstAt('2026-03-01T00:00:00Z')).toBeNull()
    expect(await firstAt('2025-03-01T00:00:00Z')).toMatchObject({ unique_users: 0 })
  })
})

describe('GET …/metrics/new-devices', () => {
  it('counts to the millisecond, up to now', async () => {
    const appId = await createTestApp(owner)
    const asked: unknown[] = []
    const store = {
      countNewDevices: async (input: unknown) => {
        asked.push(input)
        return [5, 3]
      },
      findFirstTime: async () => 0,
    }
    expect(await ask(store, (api) => api.getNewDevices({ params: { appId }, query: { window_days: '7' } }))).toEqual({
      current: 5,
      previous: 3,
      window_days: 7,
      as_of: now,
    })
    const nowMs = time(now)
    expect(asked).toEqual([
      {
        appId,
        spans: [
          { fromMs: nowMs - 7 * dayMs, toMs: nowMs + 1 },
          { fromMs: nowMs - 14 * dayMs, toMs: nowMs - 7 * dayMs },
        ],
      },
    ])
  })

  it('has nothing to compare with when nothing was recorded before the window', async () => {
    const appId = await createTestApp(owner)
    const store = { countNewDevices: async () => [5, 0], findFirstTime: async () => time(now) - 28 * dayMs }
    expect(await ask(store, (api) => api.getNewDevices({ params: { appId } }))).toMatchObject({
      previous: null,
      window_days: 28,
    })
  })
})

/** Devices of the 28 whole days before now, from the one that they begin with. */
const countHourly =
  (devicesAt: (weekday: number, hour: number, day: number) => number): ActivityStore['countHourly'] =>
  async ({ fromMs, toMs }) =>
    Array.from({ length: (toMs - fromMs) / hourMs }, (_, index) => {
      const start = new Date(fromMs + index * hourMs)
      return devicesAt(start.getUTCDay(), start.getUTCHours(), Math.floor(index / 24))
    })

describe('GET …/metrics/active-hours', () => {
  it('looks at the 28 whole days before today', async () => {
    const appId = await createTestApp(owner)
    const asked: unknown[] = []
    const answer = await ask(
      {
        countHourly: async (input) => {
          asked.push(input)
          return await countHourly((_weekday, hour) => hour)(input)
        },
      },
      (api) => api.getActiveHours({ params: { appId } }),
    )
    expect(asked).toEqual([{ appId, fromMs: time('2026-02-18T00:00:00Z'), toMs: time('2026-03-18T00:00:00Z') }])
    expect(answer).toEqual({
      hourly: Array.from({ length: 24 }, (_, hour) => ({ hour_utc: hour, average_active_devices: hour })),
      recommended_window_start_utc: 0,
      recommended_window_length_hours: 2,
      busiest_hour_utc: 23,
      lookback_days: 28,
      as_of: now,
    })
  })
})

describe('GET …/metrics/activity-heatmap', () => {
  it('has a cell for every hour of the week, from Sunday', async () => {
    const appId = await createTestApp(owner)
    const store = { countHourly: countHourly((weekday, hour) => weekday * 100 + hour) }
    const answer = await ask(store, (api) => api.getActivityHeatmap({ params: { appId } }))
    expect(answer).toEqual({
      cells: Array.from({ length: 168 }, (_, cell) => ({
        day_of_week_utc: Math.floor(cell / 24) + 1,
        hour_utc: cell % 24,
        average_active_devices: Math.floor(cell / 24) * 100 + (cell % 24),
      })),
      busiest_day_of_week_utc: 7,
      busiest_hour_utc: 23,
      lookback_days: 28,
      as_of: now,
    })
  })

  it('names nothing as busiest below 7 days with data', async () => {
    const appId = await createTestApp(owner)
    const store = { countHourly: countHourly((_weekday, _hour, day) => (day < 6 ? 9 : 0)) }
    expect(await ask(store, (api) => api.getActivityHeatmap({ params: { appId } }))).toMatchObject({
      busiest_day_of_week_utc: null,
      busiest_hour_utc: null,
    })
  })
})

describe('GET …/metrics/patch-installs and patch-downloads', () => {
  let appId: string
  let releaseId: number

  beforeAll(async () => {
    appId = await createTestApp(owner)
    releaseId = await createTestRelease(owner.api, appId, '1.0.0')
    const { db } = service.deps
    const { id: app } = await db
      .insertInto('activity_apps')
      .values({ app_id: appId })
      .returning('id')
      .executeTakeFirstOrThrow()
    const other = await db
      .insertInto('activity_apps')
      .values({ app_id: 'another' })
      .returning('id')
      .executeTakeFirstOrThrow()
    const row = (start: string, version: string, patch: number, count: number, type = '__patch_install__') => ({
      app,
      start: new Date(start),
      release_version: version,
      patch_number: patch,
      type,
      count,
    })
    await db
      .insertInto('activity_event_counts')
      .values([
        row('2026-02-28T23:00:00Z', '1.0.0', 1, 100),
        row('2026-03-01T00:00:00Z', '1.0.0', 1, 1),
        row('2026-03-01T05:00:00Z', '1.0.0', 10, 2),
        row('2026-03-02T23:00:00Z', '1.0.0', 2, 2),
        row('2026-03-02T23:00:00Z', '2.0.0', 1, 8),
        row('2026-03-04T23:00:00Z', '2.0.0', 1, 16),
        row('2026-03-05T00:00:00Z', '2.0.0', 1, 1000),
        row('2026-03-01T00:00:00Z', '1.0.0', 1, 32, '__patch_download__'),
        row('2026-03-01T00:00:00Z', '1.0.0', 1, 64, 'something_else'),
        { ...row('2026-03-01T00:00:00Z', '1.0.0', 1, 128), app: other.id },
      ])
      .execute()
  })

  const query = { start: '2026-03-01T00:00:00Z', end: '2026-03-05T00:00:00Z' }
  const range = { start: '2026-03-01T00:00:00.000Z', end: '2026-03-05T00:00:00.000Z' }
  const findFirstTime = async () => 0

  it('count what was received in the window', async () => {
    const installs = await ask({}, (api) => api.getPatchInstalls({ params: { appId }, query }))
    expect(installs).toEqual({ count: 29, range, as_of: now, granularity: null, current: { count: 29, range } })
    const downloads = await ask({}, (api) => api.getPatchDownloads({ params: { appId }, query }))
    expect(downloads).toMatchObject({ count: 32 })
  })

  it('compare with the window before when there was anything', async () => {
    const installs = await ask({ findFirstTime }, (api) => api.getPatchInstalls({ params: { appId }, query }))
    expect(installs.previous).toEqual({
      count: 100,
      range: { start: '2026-02-25T00:00:00.000Z', end: '2026-03-01T00:00:00.000Z' },
    })
  })

  it('have a series and a breakdown that sum to the count', async () => {
    const answer = await ask({}, (api) =>
      api.getPatchInstalls({ params: { appId }, query: { ...query, granularity: 'day', group_by: 'release' } }),
    )
    const { as_of, granularity, current, ...top } = answer
    expect(top).toEqual(current)
    const point = (day: string, count: number) => ({ period: `${day}T00:00:00.000Z`, count })
    expect(current).toEqual({
      count: 29,
      range,
      time_series: [point('2026-03-01', 3), point('2026-03-02', 10), point('2026-03-04', 16)],
      breakdown: [
        {
          group_by: 'release',
          group_value: '2.0.0',
          count: 24,
          time_series: [point('2026-03-02', 8), point('2026-03-04', 16)],
        },
        {
          group_by: 'release',
          group_value: '1.0.0',
          count: 5,
          time_series: [point('2026-03-01', 3), point('2026-03-02', 2)],
        },
      ],
    })
  })

  it('count one release, by patch', async () => {
    const params = { appId, releaseId }
    const answer = await ask({}, (api) =>
      api.getReleasePatchInstalls({ params, query: { ...query, group_by: 'patch' } }),
    )
    const group = (value: string, count: number) => ({ group_by: 'patch', group_value: value, count })
    expect(answer.current).toEqual({ count: 5, range, breakdown: [group('2', 2), group('10', 2), group('1', 1)] })
    expect(await ask({}, (api) => api.getReleasePatchDownloads({ params, query }))).toMatchObject({ count: 32 })
  })

  it('are compacted before they are counted', async () => {
    const compacted: unknown[] = []
    const compact = async (input: unknown) => {
      compacted.push(input)
    }
    await ask({ compact }, (api) => api.getPatchInstalls({ params: { appId }, query }))
    expect(compacted).toEqual([{ appId }])
  })
})

describe('DELETE …/devices/{clientId}', () => {
  it.each(['4e4d2b4a-0000-4000-8000-000000000000', 'a b/c?d#e%25%2F+&=é😀', 'x'.repeat(256), '😀'.repeat(128)])(
    'removes the device %s',
    async (clientId) => {
      const appId = await createTestApp(owner)
      const removed: unknown[] = []
      const removeDevice = async (input: unknown) => removed.push(input) > 0
      await ask({ removeDevice }, (api) => api.deleteDevice({ params: { appId, clientId } }))
      expect(removed).toEqual([{ appId, clientId }])
    },
  )

  it('is a 404 when nothing is recorded of the device', async () => {
    const appId = await createTestApp(owner)
    await expect(ask({}, (api) => api.deleteDevice({ params: { appId, clientId: 'x' } }))).rejects.toMatchObject({
      status: 404,
      code: 'not_found',
    })
  })
})
