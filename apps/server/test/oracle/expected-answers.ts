import type { Counted, Counts, Group, Point, Window } from './counts.ts'
import { dayMs } from './requests.ts'

type Range = { start: string; end: string }

const lookbackDays = 28
const hourMs = 3_600_000

/**
 * What is counted for a range that an answer names: all of it, and of the hour that is not over yet all there is so far,
 * whatever devices with fast clocks have told of the rest of it.
 */
export function readRange({ start, end }: Range, nowMs: number): { fromMs: number; toMs: number } {
  const [fromMs, toMs] = [Date.parse(start), Date.parse(end)]
  return { fromMs, toMs: toMs === nowMs && fromMs < toMs ? Math.floor(nowMs / hourMs) * hourMs + hourMs : toMs }
}

/** The window of a request, cut to whole hours as the definition says. undefined: nothing is left of it. */
export function expectRange(query: { start?: string; end?: string }, nowMs: number): Range | undefined {
  const endMs = query.end === undefined ? nowMs : Date.parse(query.end)
  const askedMs = query.start === undefined ? endMs - 28 * dayMs : Date.parse(query.start)
  const startMs = Math.max(askedMs, endMs - 32 * dayMs)
  const hour = Math.floor(nowMs / hourMs)
  const isCurrent = (timeMs: number) => Math.floor(timeMs / hourMs) === hour
  const start = isCurrent(startMs) ? hour * hourMs : Math.ceil(startMs / hourMs) * hourMs
  const isUntilNow = endMs === nowMs || (isCurrent(endMs) && endMs % hourMs !== 0)
  const end = isUntilNow ? nowMs : Math.floor(endMs / hourMs) * hourMs
  return start < end ? { start: toText(start), end: toText(end) } : undefined
}

export async function expectVersions(counts: Counts, nowMs: number) {
  const versions = await counts.versions({ sinceMs: nowMs - 28 * dayMs })
  const total = versions.reduce((sum, { devices }) => sum + devices, 0)
  return {
    entries: versions.map(({ release, devices }) => ({
      release_version: release,
      releaseVersion: release,
      device_count: devices,
      deviceCount: devices,
      percentage: devices / total,
    })),
    total_devices: total,
    active_window_days: 28,
    range: { start: toText(nowMs - 28 * dayMs), end: toText(nowMs) },
    as_of: toText(nowMs),
  }
}

export async function expectAdoptionSeries(counts: Counts, input: Parameters<Counts['adoption']>[0]) {
  const points = await counts.adoption(input)
  return points.map((series) =>
    series.map(({ periodMs, devices, target }) => ({
      period: periodMs === undefined ? null : toText(periodMs),
      devices,
      target,
      adoption_pct: target === 0 ? 0 : Math.min(1, devices / target),
    })),
  )
}

/** The fields that unique users and patch events share, with the name that each has for its count. */
export function expectCounted(
  counted: Counted<string | number | null>,
  options: { count: 'unique_users' | 'count'; window: Window; groupBy: string | undefined },
) {
  const { count, window, groupBy } = options
  const toSeries = (points: Point[]) =>
    window.granularity === undefined
      ? {}
      : { time_series: points.map((point) => ({ period: toText(point.periodMs), [count]: point.count })) }
  const toGroup = (group: Group<string | number | null>) => ({
    group_by: groupBy,
    group_value: String(group.value ?? ''),
    [count]: group.count,
    ...toSeries(group.series),
  })
  // Stable: among equals the order of the values stays.
  const groups = counted.groups.toSorted((a, b) => b.count - a.count)
  return {
    [count]: counted.count,
    ...toSeries(counted.series),
    ...(groupBy === undefined ? {} : { breakdown: groups.map(toGroup) }),
  }
}

export async function expectNewDevices(counts: Counts, windowDays: number, nowMs: number) {
  const fromMs = nowMs - windowDays * dayMs
  const firstMs = await counts.firstMs()
  const before = await counts.newDevices({ fromMs: fromMs - windowDays * dayMs, toMs: fromMs })
  return {
    current: await counts.newDevices({ fromMs, toMs: nowMs + 1 }),
    previous: firstMs === undefined || firstMs >= fromMs ? null : before,
    window_days: windowDays,
    as_of: toText(nowMs),
  }
}

export async function expectHeatmap(counts: Counts, nowMs: number) {
  const { cells, isEnough } = await countWholeDays(counts, nowMs)
  const busiest = isEnough ? cells.indexOf(Math.max(...cells)) : undefined
  return {
    cells: cells.map((devices, cell) => ({
      day_of_week_utc: Math.floor(cell / 24) + 1,
      hour_utc: cell % 24,
      average_active_devices: devices / 4,
    })),
    busiest_day_of_week_utc: busiest === undefined ? null : Math.floor(busiest / 24) + 1,
    busiest_hour_utc: busiest === undefined ? null : busiest % 24,
    lookback_days: lookbackDays,
    as_of: toText(nowMs),
  }
}

export async function expectActiveHours(counts: Counts, nowMs: number) {
  const { cells, isEnough } = await countWholeDays(counts, nowMs)
  const sums = Array.from({ length: 24 }, (_, hour) =>
    cells.filter((_, cell) => cell % 24 === hour).reduce((sum, devices) => sum + devices, 0),
  )
  const pairs = sums.map((devices, hour) => devices + (sums[(hour + 1) % 24] ?? 0))
  return {
    hourly: sums.map((devices, hour) => ({ hour_utc: hour, average_active_devices: devices / lookbackDays })),
    recommended_window_start_utc: isEnough ? pairs.indexOf(Math.min(...pairs)) : null,
    recommended_window_length_hours: 2,
    busiest_hour_utc: isEnough ? sums.indexOf(Math.max(...sums)) : null,
    lookback_days: lookbackDays,
    as_of: toText(nowMs),
  }
}

async function countWholeDays(counts: Counts, nowMs: number) {
  const toMs = Math.floor(nowMs / dayMs) * dayMs
  const fromMs = toMs - lookbackDays * dayMs
  const { series } = await counts.devices({ window: { fromMs, toMs, granularity: 'day' } })
  return { cells: await counts.hours({ fromMs, toMs }), isEnough: series.length >= 7 }
}

function toText(timeMs: number): string {
  return new Date(timeMs).toISOString()
}
