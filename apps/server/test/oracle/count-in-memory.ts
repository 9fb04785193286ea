import type { MetricsGranularity } from '@godwit/contract'
import type { Counted, Counts, Point, Span, Window } from './counts.ts'
import { type Observation, type Request, readRequests } from './requests.ts'

const hourMs = 3_600_000

/** Brute force: every question looks at every row. */
export function countInMemory(requests: Request[]): Counts {
  const { observations, events } = readRequests(requests)
  return {
    versions: async ({ sinceMs }) => {
      const latest = new Map<string, Observation>()
      for (const row of observations) {
        if (row.timeMs >= (latest.get(row.clientId)?.timeMs ?? Number.NEGATIVE_INFINITY)) latest.set(row.clientId, row)
      }
      const active = [...latest.values()].filter(({ timeMs }) => timeMs >= sinceMs)
      return groupBy(active, ({ release }) => release)
        .map(([release, rows]) => ({ release, devices: rows.length }))
        .toSorted(
          (a, b) =>
            b.devices - a.devices ||
            Number(a.release === null) - Number(b.release === null) ||
            compare(a.release, b.release),
        )
    },
    adoption: async ({ release, patches, window }) =>
      patches.map(({ number, platforms }) =>
        (window.granularity === undefined ? [{ ...window, periodMs: undefined }] : cut(window, window.granularity)).map(
          (span) => {
            const rows = observations.filter((row) => row.release === release && isWithin(row.timeMs, span))
            return {
              periodMs: span.periodMs,
              devices: countDevices(rows.filter(({ patch }) => patch >= number)),
              target: countDevices(rows.filter(({ platform }) => platforms.includes(platform))),
            }
          },
        ),
      ),
    devices: async ({ window, groupBy }) =>
      count(observations, {
        window,
        timeOf: ({ timeMs }) => timeMs,
        measure: countDevices,
        keyOf: groupBy && ((row) => (groupBy === 'platform' ? row.platform : row.release)),
      }),
    newDevices: async (span) =>
      groupBy(observations, ({ clientId }) => clientId).filter(([, rows]) =>
        isWithin(Math.min(...rows.map(({ timeMs }) => timeMs)), span),
      ).length,
    firstMs: async () =>
      observations.length === 0 ? undefined : Math.min(...observations.map(({ timeMs }) => timeMs)),
    hours: async (span) => {
      const cells = Array.from({ length: 7 * 24 }, () => 0)
      for (let fromMs = span.fromMs; fromMs < span.toMs; fromMs += hourMs) {
        const rows = observations.filter(({ timeMs }) => isWithin(timeMs, { fromMs, toMs: fromMs + hourMs }))
        const start = new Date(fromMs)
        const cell = start.getUTCDay() * 24 + start.getUTCHours()
        cells[cell] = (cells[cell] ?? 0) + countDevices(rows)
      }
      return cells
    },
    events: async ({ type, window, release, groupBy }) =>
      count(
        events.filter((event) => event.type === type && (release === undefined || event.release === release)),
        {
          window,
          timeOf: ({ receivedMs }) => receivedMs,
          measure: (rows) => rows.length,
          keyOf: groupBy && ((row) => (groupBy === 'patch_number' ? row.patch : row.release)),
        },
      ),
  }
}

function count<Row, Value extends string | number | null>(
  rows: Row[],
  options: {
    window: Window
    timeOf: (row: Row) => number
    measure: (rows: Row[]) => number
    keyOf: ((row: Row) => Value) | undefined
  },
): Counted<Value> {
  const { window, timeOf, measure, keyOf } = options
  const within = rows.filter((row) => isWithin(timeOf(row), window))
  const series = (some: Row[]): Point[] =>
    (window.granularity === undefined ? [] : cut(window, window.granularity))
      .map((span) => ({ periodMs: span.periodMs, count: measure(some.filter((row) => isWithin(timeOf(row), span))) }))
      .filter((point) => point.count > 0)
  const groups = keyOf === undefined ? [] : groupBy(within, keyOf)
  return {
    count: measure(within),
    series: series(within),
    groups: groups
      .map(([value, some]) => ({ value, count: measure(some), series: series(some) }))
      .toSorted((a, b) => compare(a.value, b.value)),
  }
}

function countDevices(rows: Observation[]): number {
  return new Set(rows.map(({ clientId }) => clientId)).size
}

function isWithin(timeMs: number, { fromMs, toMs }: Span): boolean {
  return fromMs <= timeMs && timeMs < toMs
}

/** null first, numbers by size, text by its UTF-16 units. */
function compare<Value extends string | number | null>(a: Value, b: Value): number {
  if (a === b) return 0
  return a === null || (b !== null && a < b) ? -1 : 1
}

function groupBy<Row, Key>(rows: Row[], keyOf: (row: Row) => Key): [Key, Row[]][] {
  return [...Map.groupBy(rows, keyOf)]
}

/** The buckets of a window, the first and the last cut to it. */
function cut({ fromMs, toMs }: Span, granularity: MetricsGranularity): (Span & { periodMs: number })[] {
  const spans: (Span & { periodMs: number })[] = []
  for (let start = fromMs; start < toMs; ) {
    const { periodMs, endMs } = findPeriod(new Date(start), granularity)
    spans.push({ periodMs, fromMs: start, toMs: Math.min(endMs, toMs) })
    start = endMs
  }
  return spans
}

function findPeriod(time: Date, granularity: MetricsGranularity): { periodMs: number; endMs: number } {
  const [year, month, day, hour] = [time.getUTCFullYear(), time.getUTCMonth(), time.getUTCDate(), time.getUTCHours()]
  // From Monday.
  const dayOfWeek = (time.getUTCDay() + 6) % 7
  switch (granularity) {
    case 'hour':
      return { periodMs: Date.UTC(year, month, day, hour), endMs: Date.UTC(year, month, day, hour + 1) }
    case 'day':
      return { periodMs: Date.UTC(year, month, day), endMs: Date.UTC(year, month, day + 1) }
    case 'week':
      return { periodMs: Date.UTC(year, month, day - dayOfWeek), endMs: Date.UTC(year, month, day - dayOfWeek + 7) }
    case 'month':
      return { periodMs: Date.UTC(year, month), endMs: Date.UTC(year, month + 1) }
  }
}
