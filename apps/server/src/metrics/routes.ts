import type { MetricsGranularity } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { bindRoute } from '../http/bind.ts'
import {
  type Comparison,
  countAdoption,
  countNewDevices,
  countPatchEvents,
  countRecentHours,
  countUniqueUsers,
  countVersions,
  deleteDevice,
} from './actions.ts'
import { findReleaseVersion } from './queries.ts'
import {
  dayAndHourOf,
  lookbackDays,
  quietHours,
  type SeriesPoint,
  shareOf,
  summarizeHours,
  summarizeWeek,
} from './rules.ts'

export function registerMetricsRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'getVersionDistribution', async ({ params }) => {
    const { asOfMs, sinceMs, total, versions } = await countVersions(deps, params)
    return {
      entries: versions.map(({ releaseVersion, devices }) => ({
        release_version: releaseVersion,
        releaseVersion,
        device_count: devices,
        deviceCount: devices,
        percentage: shareOf(devices, total),
      })),
      total_devices: total,
      active_window_days: deps.config.activeWindowDays,
      range: toRange({ startMs: sinceMs, endMs: asOfMs }),
      as_of: toTimestamp(asOfMs),
    }
  })
  bindRoute(app, deps, 'getPatchAdoption', async ({ params, query }) => {
    const adoption = await countAdoption(deps, { ...params, query, release: query.release_version })
    const periods = adoption.periodsMs.map((periodMs) => (periodMs === undefined ? null : toTimestamp(periodMs)))
    return {
      release_version: adoption.releaseVersion,
      is_latest: adoption.isLatest,
      granularity: query.granularity ?? null,
      range: toRange(adoption.window),
      as_of: toTimestamp(adoption.asOfMs),
      patches: adoption.patches.map((patch) => ({
        patch_number: patch.number,
        target_platforms: patch.platforms,
        is_rolled_back: patch.is_rolled_back,
        series: patch.points.map(({ devices, target, share }, index) => ({
          period: periods[index] ?? null,
          devices,
          target,
          adoption_pct: share,
        })),
      })),
    }
  })
  bindRoute(app, deps, 'getUniqueUsers', async ({ params, query }) => {
    const comparison = await countUniqueUsers(deps, { ...params, query })
    const { previous } = comparison
    return {
      ...toComparison(comparison, query, toUniqueUsers),
      previous: previous === undefined ? null : { unique_users: previous.count, range: toRange(previous.window) },
    }
  })
  bindRoute(app, deps, 'getNewDevices', async ({ params, query }) => {
    const windowDays = query.window_days
    const { asOfMs, current, previous } = await countNewDevices(deps, { ...params, windowDays })
    return { current, previous, window_days: windowDays, as_of: toTimestamp(asOfMs) }
  })
  bindRoute(app, deps, 'getActiveHours', async ({ params }) => {
    const { asOfMs, devicesByHour } = await countRecentHours(deps, params)
    const { averages, busiestHour, quietestStart } = summarizeHours(devicesByHour)
    return {
      hourly: averages.map((average, hour) => ({ hour_utc: hour, average_active_devices: average })),
      recommended_window_start_utc: quietestStart,
      recommended_window_length_hours: quietHours,
      busiest_hour_utc: busiestHour,
      lookback_days: lookbackDays,
      as_of: toTimestamp(asOfMs),
    }
  })
  bindRoute(app, deps, 'getActivityHeatmap', async ({ params }) => {
    const { asOfMs, fromMs, devicesByHour } = await countRecentHours(deps, params)
    const { averages, busiestCell } = summarizeWeek(devicesByHour, new Date(fromMs).getUTCDay())
    const busiest = busiestCell === null ? undefined : toCell(busiestCell)
    return {
      cells: averages.map((average, cell) => ({ ...toCell(cell), average_active_devices: average })),
      busiest_day_of_week_utc: busiest?.day_of_week_utc ?? null,
      busiest_hour_utc: busiest?.hour_utc ?? null,
      lookback_days: lookbackDays,
      as_of: toTimestamp(asOfMs),
    }
  })
  bindEventCounts(app, deps)
  bindRoute(app, deps, 'deleteDevice', async ({ params }) => {
    await deleteDevice(deps, params)
  })
}

function bindEventCounts(app: FastifyInstance, deps: Deps): void {
  const types = { Installs: '__patch_install__', Downloads: '__patch_download__' } as const
  for (const what of ['Installs', 'Downloads'] as const) {
    const type = types[what]
    bindRoute(app, deps, `getPatch${what}`, async ({ params, query }) =>
      toEventComparison(await countPatchEvents(deps, { ...params, type, query }), query),
    )
    bindRoute(app, deps, `getReleasePatch${what}`, async ({ params: { appId, releaseId }, query }) => {
      const releaseVersion = await findReleaseVersion(deps.db, { appId, releaseId })
      if (releaseVersion === undefined) throw new AppError('not_found')
      return toEventComparison(await countPatchEvents(deps, { appId, type, releaseVersion, query }), query)
    })
  }
}

type Asked<By extends string> = { granularity?: MetricsGranularity | undefined; group_by?: By | undefined }

function toEventComparison<By extends string>(comparison: Comparison, query: Asked<By>) {
  const { previous } = comparison
  return {
    ...toComparison(comparison, query, toEvents),
    ...(previous === undefined ? {} : { previous: { count: previous.count, range: toRange(previous.window) } }),
  }
}

/** What was counted, at the top and again under `current`: the clients read either. */
function toComparison<By extends string, Counted extends object, Point>(
  { asOfMs, window, current: summary }: Comparison,
  { granularity, group_by: groupBy }: Asked<By>,
  shape: { count: (count: number) => Counted; point: (point: SeriesPoint) => Point },
) {
  const series = (points: SeriesPoint[]) =>
    granularity === undefined ? {} : { time_series: points.map((point) => shape.point(point)) }
  const breakdown = (by: By) =>
    summary.groups.map(({ value, count, series: points }) => ({
      group_by: by,
      group_value: value,
      ...shape.count(count),
      ...series(points),
    }))
  const current = {
    ...shape.count(summary.count),
    range: toRange(window),
    ...series(summary.series),
    ...(groupBy === undefined ? {} : { breakdown: breakdown(groupBy) }),
  }
  return { ...current, as_of: toTimestamp(asOfMs), granularity: granularity ?? null, current }
}

const toUniqueUsers = {
  count: (count: number) => ({ unique_users: count }),
  point: ({ periodMs, count }: SeriesPoint) => ({ period: toTimestamp(periodMs), unique_users: count }),
}
const toEvents = {
  count: (count: number) => ({ count }),
  point: ({ periodMs, count }: SeriesPoint) => ({ period: toTimestamp(periodMs), count }),
}

/** Days of the week count from 1, Sunday. */
function toCell(cell: number): { day_of_week_utc: number; hour_utc: number } {
  const { dayOfWeek, hour } = dayAndHourOf(cell)
  return { day_of_week_utc: dayOfWeek + 1, hour_utc: hour }
}

function toRange({ startMs, endMs }: { startMs: number; endMs: number }) {
  return { start: toTimestamp(startMs), end: toTimestamp(endMs) }
}

function toTimestamp(timeMs: number): string {
  return new Date(timeMs).toISOString()
}
