import type { DeviceCounts } from '../activity/activity-store.ts'

/** Of what is averaged over: whole days before today. */
export const lookbackDays = 28
/** With fewer days that have data the busiest and the quietest hours would be chance. */
const minDaysWithData = 7
const hoursPerDay = 24
const daysPerWeek = 7
export const quietHours = 2

/** By code point, as PostgreSQL's collation "C" sorts; `<` compares UTF-16 units. */
function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

export type VersionCount = { releaseVersion: string | null; devices: number }

/** Most devices first, then by version, those without a version last. */
export function sortVersions(counts: VersionCount[]): VersionCount[] {
  return counts.toSorted(
    (a, b) => b.devices - a.devices || compareNullable(a.releaseVersion, b.releaseVersion, compareText),
  )
}

function compareNullable<Value>(a: Value | null, b: Value | null, compare: (a: Value, b: Value) => number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null)
  return compare(a, b)
}

/** A share of a whole, 0 when there is no whole. */
export function shareOf(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.min(1, part / whole)
}

export type Counted = { value: string; count: number }

/** Most first; equal ones by number where values are numbers, else by text. */
export function sortGroups<Group extends Counted>(groups: Group[], valuesAre: 'text' | 'numbers'): Group[] {
  const compare = valuesAre === 'numbers' ? (a: string, b: string) => Number(a) - Number(b) : compareText
  return groups.toSorted((a, b) => b.count - a.count || compare(a.value, b.value))
}

export type SeriesPoint = { periodMs: number; count: number }

/** What is counted in a window: over all of it, and where there are buckets, in each that has anything. */
export type Summary = {
  count: number
  series: SeriesPoint[]
  groups: (Counted & { series: SeriesPoint[] })[]
}

export const emptySummary: Summary = { count: 0, series: [], groups: [] }

/** Of the counts of a window and then of each of its buckets. */
export function summarizeDevices(counts: DeviceCounts[], periodsMs: number[]): Summary {
  const [whole = { devices: 0, groups: [] }, ...ofBuckets] = counts
  const devicesByValue = ofBuckets.map(
    ({ groups }) => new Map(groups.map(({ value, devices }) => [value, devices] as const)),
  )
  return {
    count: whole.devices,
    series: listPoints(periodsMs, (index) => ofBuckets[index]?.devices),
    groups: sortGroups(
      whole.groups.map(({ value, devices }) => ({
        value: value ?? '',
        count: devices,
        series: listPoints(periodsMs, (index) => devicesByValue[index]?.get(value)),
      })),
      'text',
    ),
  }
}

export type EventCount = {
  /** Which bucket of the window, from 0; 0 also without buckets. */
  bucket: number
  /** null: not grouped. */
  value: string | null
  count: number
}

export function summarizeEvents(rows: EventCount[], periodsMs: number[], valuesAre: 'text' | 'numbers'): Summary {
  const byValue = Map.groupBy(rows, ({ value }) => value)
  const groups = [...byValue].flatMap(([value, some]) => (value === null ? [] : [{ value, ...sumUp(some, periodsMs) }]))
  return { ...sumUp(rows, periodsMs), groups: sortGroups(groups, valuesAre) }
}

function sumUp(rows: EventCount[], periodsMs: number[]): { count: number; series: SeriesPoint[] } {
  const perBucket = new Map<number, number>()
  for (const { bucket, count } of rows) perBucket.set(bucket, (perBucket.get(bucket) ?? 0) + count)
  return {
    count: rows.reduce((sum, row) => sum + row.count, 0),
    series: listPoints(periodsMs, (index) => perBucket.get(index)),
  }
}

function listPoints(periodsMs: number[], countOf: (index: number) => number | undefined): SeriesPoint[] {
  return periodsMs.map((periodMs, index) => ({ periodMs, count: countOf(index) ?? 0 })).filter(({ count }) => count > 0)
}

export type ActiveHours = {
  /** By hour of the day. */
  averages: number[]
  busiestHour: number | null
  /** Where the hours in a row begin that have the least activity. */
  quietestStart: number | null
}

/** Of the devices of every hour of whole days. Among equals the earliest hour. */
export function summarizeHours(devicesByHour: number[]): ActiveHours {
  const sums = sumByCell(devicesByHour, hoursPerDay, 0)
  const averages = sums.map((sum) => sum / (devicesByHour.length / hoursPerDay))
  if (countDaysWithData(devicesByHour) < minDaysWithData) return { averages, busiestHour: null, quietestStart: null }
  const quietSums = sums.map((_, start) =>
    Array.from({ length: quietHours }, (_, next) => sums[(start + next) % hoursPerDay] ?? 0).reduce((a, b) => a + b, 0),
  )
  return {
    averages,
    busiestHour: sums.indexOf(Math.max(...sums)),
    quietestStart: quietSums.indexOf(Math.min(...quietSums)),
  }
}

export type Heatmap = {
  /** By day of the week from Sunday, then by hour. */
  averages: number[]
  /** Of `averages`; null below the days that make it more than chance. */
  busiestCell: number | null
}

/** Of the devices of every hour of whole weeks that begin on a day of the week, 0 for Sunday. Among equals the earliest cell. */
export function summarizeWeek(devicesByHour: number[], firstDayOfWeek: number): Heatmap {
  const cells = daysPerWeek * hoursPerDay
  const sums = sumByCell(devicesByHour, cells, firstDayOfWeek * hoursPerDay)
  const averages = sums.map((sum) => sum / (devicesByHour.length / cells))
  const isKnown = countDaysWithData(devicesByHour) >= minDaysWithData
  return { averages, busiestCell: isKnown ? sums.indexOf(Math.max(...sums)) : null }
}

export function dayAndHourOf(cell: number): { dayOfWeek: number; hour: number } {
  return { dayOfWeek: Math.floor(cell / hoursPerDay), hour: cell % hoursPerDay }
}

function sumByCell(devicesByHour: number[], cells: number, offset: number): number[] {
  const sums = Array.from({ length: cells }, () => 0)
  for (const [hour, devices] of devicesByHour.entries()) {
    const cell = (hour + offset) % cells
    sums[cell] = (sums[cell] ?? 0) + devices
  }
  return sums
}

function countDaysWithData(devicesByHour: number[]): number {
  const days = new Set<number>()
  for (const [hour, devices] of devicesByHour.entries()) if (devices > 0) days.add(Math.floor(hour / hoursPerDay))
  return days.size
}
