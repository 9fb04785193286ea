import type { OperationId } from '@godwit/contract'
import { type Client, createClient } from '@godwit/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, createTestRelease } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

const now = '2026-03-18T12:34:56.789Z'
const dayMs = 86_400_000
/** The default window at that time. */
const range = { start: '2026-02-18T13:00:00.000Z', end: now }

let service: TestService
let owner: TestAccount
let stranger: TestAccount
let appId: string
let releaseId: number

beforeAll(async () => {
  service = await createTestService({ clock: () => new Date(now) })
  owner = await service.createAccount()
  stranger = await service.createAccount()
  appId = await createTestApp(owner)
  releaseId = await createTestRelease(owner.api, appId, '1.0.0')
})

afterAll(async () => {
  await service.stop()
})

type Query = Record<string, string>
type Question = (api: Client, app: string, query?: Query) => Promise<unknown>

const questions: Partial<Record<OperationId, Question>> = {
  getVersionDistribution: (api, app) => api.getVersionDistribution({ params: { appId: app } }),
  getPatchAdoption: (api, app, query) => api.getPatchAdoption({ params: { appId: app }, query }),
  getUniqueUsers: (api, app, query) => api.getUniqueUsers({ params: { appId: app }, query }),
  getNewDevices: (api, app, query) => api.getNewDevices({ params: { appId: app }, query }),
  getActiveHours: (api, app) => api.getActiveHours({ params: { appId: app } }),
  getActivityHeatmap: (api, app) => api.getActivityHeatmap({ params: { appId: app } }),
  getPatchInstalls: (api, app, query) => api.getPatchInstalls({ params: { appId: app }, query }),
  getPatchDownloads: (api, app, query) => api.getPatchDownloads({ params: { appId: app }, query }),
  getReleasePatchInstalls: (api, app, query) =>
    api.getReleasePatchInstalls({ params: { appId: app, releaseId }, query }),
  getReleasePatchDownloads: (api, app, query) =>
    api.getReleasePatchDownloads({ params: { appId: app, releaseId }, query }),
  importActivity: (api, app) => api.importActivity({ params: { appId: app }, body: '' }),
}
const all = Object.keys(questions) as OperationId[]
const windowed = [
  'getPatchAdoption',
  'getUniqueUsers',
  'getPatchInstalls',
  'getPatchDownloads',
  'getReleasePatchInstalls',
  'getReleasePatchDownloads',
] as const satisfies OperationId[]
const grouped = windowed.filter((id) => id !== 'getPatchAdoption')

async function ask(id: OperationId, options: { api?: Client; app?: string; query?: Query } = {}): Promise<unknown> {
  return await questions[id]?.(options.api ?? owner.api, options.app ?? appId, options.query)
}

function refusal(details: string): object {
  return { status: 400, code: 'invalid_request', details: expect.stringContaining(details) }
}

describe('an app without data', () => {
  const events = { count: 0, range, as_of: now, granularity: null, current: { count: 0, range } }
  const average = { average_active_devices: 0 }
  const answers: Partial<Record<OperationId, unknown>> = {
    getVersionDistribution: {
      entries: [],
      total_devices: 0,
      active_window_days: 28,
      range: { start: '2026-02-18T12:34:56.789Z', end: now },
      as_of: now,
    },
    getPatchAdoption: {
      release_version: '1.0.0',
      is_latest: true,
      granularity: null,
      range,
      as_of: now,
      patches: [],
    },
    getUniqueUsers: {
      unique_users: 0,
      range,
      as_of: now,
      granularity: null,
      current: { unique_users: 0, range },
      previous: null,
    },
    getNewDevices: { current: 0, previous: null, window_days: 28, as_of: now },
    getActiveHours: {
      hourly: Array.from({ length: 24 }, (_, hour) => ({ hour_utc: hour, ...average })),
      recommended_window_start_utc: null,
      recommended_window_length_hours: 2,
      busiest_hour_utc: null,
      lookback_days: 28,
      as_of: now,
    },
    getActivityHeatmap: {
      cells: Array.from({ length: 168 }, (_, cell) => ({
        day_of_week_utc: Math.floor(cell / 24) + 1,
        hour_utc: cell % 24,
        ...average,
      })),
      busiest_day_of_week_utc: null,
      busiest_hour_utc: null,
      lookback_days: 28,
      as_of: now,
    },
    getPatchInstalls: events,
    getPatchDownloads: events,
    getReleasePatchInstalls: events,
    getReleasePatchDownloads: events,
    importActivity: { accepted: 0, duplicates: 0, rejected: [], rejected_count: 0 },
  }

  it.each(all)('%s answers zeros', async (id) => {
    expect(await ask(id)).toEqual(answers[id])
  })

  it.each(grouped)('%s has neither points nor groups', async (id) => {
    const groupBy = id === 'getUniqueUsers' ? 'platform' : id.startsWith('getRelease') ? 'patch' : 'release'
    expect(await ask(id, { query: { granularity: 'day', group_by: groupBy } })).toMatchObject({
      granularity: 'day',
      time_series: [],
      breakdown: [],
    })
  })

  it('has points of patches that nobody runs', async () => {
    const app = await createTestApp(owner)
    const release = await createTestRelease(owner.api, app)
    await owner.api.createPatch({ params: { appId: app }, body: { release_id: release } })
    const { patches } = await owner.api.getPatchAdoption({ params: { appId: app }, query: { granularity: 'week' } })
    const periods = ['2026-02-16', '2026-02-23', '2026-03-02', '2026-03-09', '2026-03-16']
    expect(patches).toEqual([
      {
        patch_number: 1,
        target_platforms: [],
        is_rolled_back: false,
        series: periods.map((day) => ({
          period: `${day}T00:00:00.000Z`,
          devices: 0,
          target: 0,
          adoption_pct: 0,
        })),
      },
    ])
  })

  it('has no device to delete', async () => {
    await expect(owner.api.deleteDevice({ params: { appId, clientId: 'nobody' } })).rejects.toMatchObject({
      status: 404,
      code: 'not_found',
    })
  })
})

describe('a window', () => {
  it.each(windowed)('of %s must begin before it ends', async (id) => {
    const query = { start: '2026-03-02T00:00:00Z', end: '2026-03-01T00:00:00Z' }
    await expect(ask(id, { query })).rejects.toMatchObject(refusal('start: '))
  })

  it.each(windowed)('of %s is told in times with a zone', async (id) => {
    for (const name of ['start', 'end']) {
      for (const value of [
        '',
        'yesterday',
        '2026-03-01',
        '2026-03-01T00:00:00',
        '2026-02-30T00:00:00Z',
        '2026-03-01T00:00:00 02:00',
        '1767225600',
        '10000-01-01T00:00:00Z',
        '+010000-01-01T00:00:00Z',
        '-000001-01-01T00:00:00Z',
      ]) {
        await expect(ask(id, { query: { [name]: value } })).rejects.toMatchObject(
          refusal(`${name}: must be a time with`),
        )
      }
    }
  })

  it.each(windowed)('of %s lies in years that can be counted', async (id) => {
    for (const value of ['0000-01-01T00:00:00+23:59', '1969-12-31T23:59:59Z', '9999-12-31T23:59:59.999-23:59']) {
      for (const name of ['start', 'end']) {
        await expect(ask(id, { query: { [name]: value } })).rejects.toMatchObject(refusal(`${name}: must lie in`))
      }
    }
    expect(await ask(id, { query: { start: '1970-01-01T00:00:00Z', end: '1970-01-01T00:00:01Z' } })).toMatchObject({
      range: { start: '1970-01-01T00:00:00.000Z', end: '1970-01-01T00:00:00.000Z' },
    })
    expect(await ask(id, { query: { start: '9998-12-01T00:00:00Z', end: '9998-12-31T23:59:59Z' } })).toMatchObject({
      range: { start: '9998-12-01T00:00:00.000Z', end: '9998-12-31T23:00:00.000Z' },
    })
  })

  it.each(windowed)('of %s has a granularity that is known', async (id) => {
    await expect(ask(id, { query: { granularity: 'minute' } })).rejects.toMatchObject(refusal('granularity: '))
    for (const granularity of ['hour', 'day', 'week', 'month']) {
      expect(await ask(id, { query: { granularity } })).toMatchObject({ granularity })
    }
  })

  it.each(windowed)('of %s has no hours where they are no longer kept', async (id) => {
    const end = new Date(Date.parse(now) - 89 * dayMs).toISOString()
    await expect(ask(id, { query: { granularity: 'hour', end } })).rejects.toMatchObject(refusal('granularity: '))
    expect(await ask(id, { query: { granularity: 'day', end } })).toMatchObject({ granularity: 'day' })
  })

  it.each(windowed)('of %s is echoed as it was counted', async (id) => {
    const query = { start: '2026-01-01T00:10:00+02:00', end: '2026-03-10T07:59:00Z' }
    expect(await ask(id, { query })).toMatchObject({
      range: { start: '2026-02-06T08:00:00.000Z', end: '2026-03-10T07:00:00.000Z' },
    })
  })

  it('tells of a plus sign that a URL lost', async () => {
    const url = `${service.baseUrl}/api/v1/apps/${appId}/metrics/unique-users?start=2026-03-01T00:00:00+02:00`
    const answer = await fetch(url, { headers: { authorization: `Bearer ${owner.apiKey}` } })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ details: expect.stringContaining('%2B') })
  })

  it('is told once', async () => {
    for (const query of ['start=2026-03-01T00:00:00Z&start=2026-03-01T00:00:00Z', 'granularity=day&granularity=day']) {
      const url = `${service.baseUrl}/api/v1/apps/${appId}/metrics/unique-users?${query}`
      const answer = await fetch(url, { headers: { authorization: `Bearer ${owner.apiKey}` } })
      expect(answer.status).toBe(400)
    }
  })
})

describe('other parameters', () => {
  it.each(grouped)('%s is grouped only by what it has', async (id) => {
    for (const groupBy of ['', 'arch', id.startsWith('getRelease') ? 'release' : 'patch']) {
      await expect(ask(id, { query: { group_by: groupBy } })).rejects.toMatchObject(refusal('group_by: '))
    }
  })

  it.each(['0', '401', '-1', '1.5', '', 'x', '1e2'])('getNewDevices refuses a window of %j days', async (days) => {
    await expect(ask('getNewDevices', { query: { window_days: days } })).rejects.toMatchObject(refusal('window_days: '))
  })

  it.each(['1', '400'])('getNewDevices takes a window of %s days', async (days) => {
    expect(await ask('getNewDevices', { query: { window_days: days } })).toMatchObject({ window_days: Number(days) })
  })

  it('getPatchAdoption does not know a release that the app does not have', async () => {
    const unknown = { status: 404, code: 'not_found', details: expect.stringContaining('release_version: ') }
    for (const release of ['', '9.9.9', 'x'.repeat(1000)]) {
      await expect(ask('getPatchAdoption', { query: { release_version: release } })).rejects.toMatchObject(unknown)
    }
    const app = await createTestApp(owner)
    await expect(ask('getPatchAdoption', { app })).rejects.toMatchObject(unknown)
    await expect(ask('getPatchAdoption', { query: { release_version: 'a\0' } })).rejects.toMatchObject(
      refusal('release_version: '),
    )
  })

  it.each(['getReleasePatchInstalls', 'getReleasePatchDownloads'] as const)(
    '%s does not know a release of another app',
    async (id) => {
      const app = await createTestApp(owner)
      await expect(ask(id, { app })).rejects.toMatchObject({ status: 404, code: 'not_found' })
    },
  )
})

describe('rights', () => {
  it.each(all)('%s needs a credential', async (id) => {
    const api = createClient({ baseUrl: service.baseUrl })
    await expect(ask(id, { api })).rejects.toMatchObject({ status: 401, code: 'unauthenticated' })
  })

  it.each(all)('%s hides the app from others', async (id) => {
    await expect(ask(id, { api: stranger.api })).rejects.toMatchObject({ status: 404, code: 'not_found' })
  })

  it.each([...all, 'deleteDevice' as const])('%s may be asked by a viewer unless it changes anything', async (id) => {
    const viewer = await service.createAccount()
    await service.deps.db
      .insertInto('organization_members')
      .values({ organization_id: owner.organizationId, user_id: viewer.userId, role: 'viewer' })
      .execute()
    const asked =
      id === 'deleteDevice'
        ? viewer.api.deleteDevice({ params: { appId, clientId: 'nobody' } })
        : ask(id, { api: viewer.api })
    if (id === 'deleteDevice' || id === 'importActivity') await expect(asked).rejects.toMatchObject({ status: 403 })
    else await expect(asked).resolves.toBeDefined()
  })
})
