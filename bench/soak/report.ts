import type { Comparison } from './compare-counts.ts'
import type { PlayerMessage } from './player.ts'

/** Memory where it can be seen. */
export type Sample = { atSeconds: number; serverMb?: number; postgresMb?: number }

/** Until then caches fill, and every device is seen for the first time. */
const warmUpPart = 0.25

type Outcome = {
  intervals: Extract<PlayerMessage, { kind: 'interval' }>[]
  late: number
  samples: Sample[]
  errors: Record<string, number>
  queryTimesMs: number[]
  counts: Comparison[]
}

/** Prints all of it; true when nothing failed and every count is right. */
export function reportSoak({ intervals, late, samples, errors, queryTimesMs, counts }: Outcome): boolean {
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
  const median = (values: number[]) => percentile(values, 0.5)
  console.log('| | |\n|---|---:|')
  const row = (name: string, value: string | number) => console.log(`| ${name} | ${value.toLocaleString('en')} |`)
  row('checks', sum(intervals.map(({ checks }) => checks)))
  row('events', sum(intervals.map(({ events }) => events)))
  row('launches that had to wait for a connection', late)
  row('check p50, ms (median of the intervals of 10 s)', median(intervals.map(({ p50Ms }) => p50Ms)).toFixed(2))
  row(
    'check p99, ms (median; worst interval)',
    `${median(intervals.map(({ p99Ms }) => p99Ms)).toFixed(2)}; ${Math.max(...intervals.map(({ p99Ms }) => p99Ms)).toFixed(2)}`,
  )
  row('questions to the metrics', queryTimesMs.length)
  row('question p50; p99, ms', `${median(queryTimesMs).toFixed(0)}; ${percentile(queryTimesMs, 0.99).toFixed(0)}`)
  row('errors', sum(Object.values(errors)))
  for (const [reason, times] of Object.entries(errors)) row(`errors: ${reason}`, times)

  console.log('\n| memory, MB | after warm-up | at the end | most | growth per hour |\n|---|---:|---:|---:|---:|')
  for (const [name, key] of [
    ['server', 'serverMb'],
    ['PostgreSQL', 'postgresMb'],
  ] as const) {
    const points = samples.flatMap((sample) => {
      const mb = sample[key]
      return mb === undefined ? [] : [{ hours: sample.atSeconds / 3600, mb }]
    })
    const warm = points.slice(Math.floor(points.length * warmUpPart))
    const [first, last] = [warm[0], warm.at(-1)]
    if (first === undefined || last === undefined) continue
    const most = Math.max(...warm.map(({ mb }) => mb))
    const cells = [first.mb, last.mb, most].map((mb) => mb.toFixed(0))
    console.log(`| ${[name, ...cells, findSlope(warm).toFixed(0)].join(' | ')} |`)
  }

  console.log('\n| | devices did | server counted | |\n|---|---:|---:|---|')
  const wrong = counts.filter(({ sent, counted }) => sent !== counted)
  for (const comparison of counts) {
    const { what, sent, counted } = comparison
    console.log(`| ${what} | ${sent} | ${counted} | ${wrong.includes(comparison) ? 'WRONG' : 'right'} |`)
  }
  return wrong.length === 0 && sum(Object.values(errors)) === 0
}

function percentile(values: number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? Number.NaN
}

/** MB per hour: the line that is nearest to the points (least squares). */
function findSlope(points: { hours: number; mb: number }[]): number {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const [meanHours, meanMb] = [mean(points.map(({ hours }) => hours)), mean(points.map(({ mb }) => mb))]
  const covariance = mean(points.map(({ hours, mb }) => (hours - meanHours) * (mb - meanMb)))
  return covariance / mean(points.map(({ hours }) => (hours - meanHours) ** 2))
}
