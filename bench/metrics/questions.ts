import { dayMs } from '../../apps/server/src/time.ts'
import { releases } from './activity.ts'

/** ISO 8601. */
export type Period = { start: string; end: string }

export type Cell = string | number | null

/** A question to the metrics, and the same one to rows of `observations`. */
export type Question = {
  name: string
  /** Under /api/v1/apps/{appId}/metrics. */
  path: (period: Period) => string
  /** What the answer says, as rows; sorted by whoever compares. */
  read: (answer: Answer) => Cell[][]
  /** For the window that the answer speaks of. In words that PostgreSQL and DuckDB share. */
  sql: (answer: Answer) => string
  /** Where DuckDB has better words. */
  duckDbSql?: (answer: Answer) => string
  /** At 10 million devices and 28 days, warm. */
  goalMs?: number
}

type Point = { period: string | null; devices: number; target: number }

/** What the questions read of their answers. */
export type Answer = {
  as_of: string
  range: Period
  window_days: number
  lookback_days: number
  entries: { release_version: string | null; device_count: number }[]
  patches: { patch_number: number; series: Point[] }[]
  unique_users: number
  current: number
  cells: { day_of_week_utc: number; hour_utc: number; average_active_devices: number }[]
  hourly: { hour_utc: number; average_active_devices: number }[]
}

const latest = releases.at(-1)?.value

export const questions: Question[] = [
  {
    name: 'versions',
    path: () => 'version-distribution',
    read: ({ entries }) => entries.map((entry) => [entry.release_version, entry.device_count]),
    sql: ({ range }) => `
      select release_version, count(*)::int from (
        select distinct on (device) device, release_version from observations
        where time >= ${literal(range.start)}
        order by device, time desc
      ) latest group by 1`,
    duckDbSql: ({ range }) => `
      select release_version, count(*)::int from (
        select arg_max(release_version, time) as release_version from observations
        where time >= ${literal(range.start)} group by device
      ) latest group by 1`,
    goalMs: 500,
  },
  defineAdoption({ name: 'adoption, window', goalMs: 150 }),
  defineAdoption({ name: 'adoption, by day', granularity: 'day', goalMs: 150 }),
  defineAdoption({ name: 'adoption, 7 days by hour', granularity: 'hour', days: 7, goalMs: 1500 }),
  {
    name: 'unique users, window',
    path: (period) => `unique-users?${toQuery(period)}`,
    read: ({ unique_users }) => [[unique_users]],
    sql: ({ range }) =>
      `select count(*)::int from (select distinct device from observations where ${isWithin(range)}) seen`,
  },
  {
    name: 'new devices',
    path: () => 'new-devices',
    read: ({ current }) => [[current]],
    sql: ({ as_of, window_days }) => `
      select count(*)::int from (select device from observations group by device having min(time) >=
        ${literal(new Date(Date.parse(as_of) - window_days * dayMs).toISOString())}) new_devices`,
  },
  {
    name: 'heatmap',
    path: () => 'activity-heatmap',
    read: ({ cells, lookback_days }) =>
      cells
        .map((cell): Cell[] => [
          cell.day_of_week_utc - 1,
          cell.hour_utc,
          Math.round(cell.average_active_devices * (lookback_days / 7)),
        ])
        .filter(([, , devices]) => devices !== 0),
    sql: (answer) => `
      select extract(dow from hour)::int, extract(hour from hour)::int, sum(devices)::int from (${hours(answer)}) hours
      group by 1, 2`,
    goalMs: 50,
  },
  {
    name: 'active hours',
    path: () => 'active-hours',
    read: ({ hourly, lookback_days }) =>
      hourly.map((hour) => [hour.hour_utc, Math.round(hour.average_active_devices * lookback_days)]),
    sql: (answer) => `
      select extract(hour from hour)::int, sum(devices)::int from (${hours(answer)}) hours group by 1`,
  },
]

function defineAdoption(options: {
  name: string
  granularity?: 'day' | 'hour'
  days?: number
  goalMs: number
}): Question {
  const { granularity, days } = options
  const numbers = Array.from({ length: latest?.patches ?? 0 }, (_, index) => `(${index + 1})`)
  return {
    name: options.name,
    path: ({ start, end }) => {
      const from = days === undefined ? start : new Date(Date.parse(end) - days * dayMs).toISOString()
      const query = { start: from, end, release_version: latest?.version ?? '' }
      return `patch-adoption?${toQuery(granularity === undefined ? query : { ...query, granularity })}`
    },
    read: ({ patches }) =>
      patches.flatMap(({ patch_number, series }) =>
        series.map(({ period, devices, target }) => [
          patch_number,
          period === null ? 0 : Date.parse(period) / 1000,
          devices,
          target,
        ]),
      ),
    // Patches have artifacts for every platform, so that the target is every device.
    sql: ({ range }) => `
      with seen as (
        select ${granularity === undefined ? '0' : `extract(epoch from date_trunc('${granularity}', time))::int`} as period,
          device, max(patch_number) as patch
        from observations where release_version = '${latest?.version}' and ${isWithin(range)}
        group by 1, 2
      )
      select number, period, count(*) filter (where patch >= number)::int, count(*)::int
      from seen cross join (values ${numbers.join(', ')}) patches (number)
      group by 1, 2`,
    goalMs: options.goalMs,
  }
}

/** Distinct devices of each hour of the whole days before that of the answer. */
function hours({ as_of, lookback_days }: Answer): string {
  const end = Math.floor(Date.parse(as_of) / dayMs) * dayMs
  const range = { start: new Date(end - lookback_days * dayMs).toISOString(), end: new Date(end).toISOString() }
  return `
    select hour, count(*) as devices from (
      select distinct device, date_trunc('hour', time) as hour from observations where ${isWithin(range)}
    ) device_hours group by 1`
}

function isWithin({ start, end }: Period): string {
  return `time >= ${literal(start)} and time < ${literal(end)}`
}

function literal(time: string): string {
  return `timestamp '${time.replace('T', ' ').replace('Z', '')}'`
}

function toQuery(fields: Record<string, string>): string {
  return new URLSearchParams(fields).toString()
}
