import type { Population } from './devices.ts'
import type { Report } from './rules.ts'

export type Counts = {
  /** Answered with 200. */
  checks: number
  /** Answered with a success, by type. */
  events: Record<Report['type'], number>
  /** Offers that a device did not have and took. */
  downloads: number
  /** Devices that a check told to give up what they would have run next. */
  uninstalls: number
  /** Lines of an import file. */
  observations: number
  /** By what went wrong. */
  errors: Record<string, number>
}

export function createCounts(): Counts {
  return {
    checks: 0,
    events: { __patch_download__: 0, __patch_install__: 0, __patch_install_failure__: 0 },
    downloads: 0,
    uninstalls: 0,
    observations: 0,
    errors: {},
  }
}

export function countError(counts: Counts, reason: string): void {
  counts.errors[reason] = (counts.errors[reason] ?? 0) + 1
}

export function sumOf(counts: Record<string, number>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

export type Summary = Counts & {
  devices: number
  devices_launched: number
  /** By release version and patch number; `base` is no patch. */
  running: Record<string, Record<string, number>>
  seconds: number
  /** The most that the process had in memory. */
  memory_mb: number
}

export function summarize(population: Population, counts: Counts, seconds: number): Summary {
  const running = [...population.countRunning()].map(([version, numbers]) => {
    const sorted = [...numbers].sort(([a], [b]) => a - b)
    return [version, Object.fromEntries(sorted.map(([number, count]) => [nameOfPatch(number), count]))]
  })
  return {
    ...counts,
    devices: population.count,
    devices_launched: population.countLaunched(),
    running: Object.fromEntries(running),
    seconds: Math.round(seconds * 10) / 10,
    memory_mb: Math.round(process.resourceUsage().maxRSS / 1024),
  }
}

function nameOfPatch(number: number): string {
  return number === 0 ? 'base' : `patch ${number}`
}

export function formatSummary(summary: Summary): string {
  const { events, errors, seconds } = summary
  const work = summary.checks + summary.observations
  const rows: [string, number | string][] = [
    ['devices', summary.devices],
    ['  of them launched', summary.devices_launched],
    ...(summary.observations > 0
      ? [['observations written', summary.observations] satisfies [string, number]]
      : [['checks answered', summary.checks] satisfies [string, number]]),
    ['offers taken', summary.downloads],
    ['rolled back on devices', summary.uninstalls],
    ...Object.entries(events).map(([type, count]): [string, number] => [`events ${type}`, count]),
    ...Object.entries(errors).map(([reason, count]): [string, number] => [`errors: ${reason}`, count]),
    ['seconds', seconds],
    [summary.observations > 0 ? 'observations/s' : 'checks/s', Math.round(work / Math.max(seconds, 0.001))],
    ['memory at most, MB', summary.memory_mb],
  ]
  for (const [version, numbers] of Object.entries(summary.running)) {
    for (const [patch, count] of Object.entries(numbers)) rows.push([`running ${version} ${patch}`, count])
  }
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value.toLocaleString('en').padStart(12)}`).join('\n')
}

/** One line while it runs. */
export function formatProgress(population: Population, counts: Counts, since: Counts, day: number): string {
  const byNumber = new Map<number, number>()
  for (const numbers of population.countRunning().values()) {
    for (const [number, count] of numbers) byNumber.set(number, (byNumber.get(number) ?? 0) + count)
  }
  const running = [...byNumber].sort(([a], [b]) => a - b).map(([number, count]) => `${nameOfPatch(number)}: ${count}`)
  const events = sumOf(counts.events)
  const rates =
    counts.observations > 0
      ? `${counts.observations - since.observations} observations/s`
      : `${counts.checks - since.checks} checks/s, ${events - sumOf(since.events)} events/s`
  return `day ${day.toFixed(2)}: ${rates}, ${sumOf(counts.errors)} errors; ${running.join(', ')}`
}
