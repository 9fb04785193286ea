import type { MetricsGranularity } from '@godwit/contract'
import type { Span } from '../activity/activity-store.ts'
import { dayMs, hourMs } from '../time.ts'

const defaultWindowMs = 28 * dayMs
const maxWindowMs = 32 * dayMs

/** What a request asks for (Unix ms). */
export type WindowRequest = {
  startMs?: number | undefined
  endMs?: number | undefined
  granularity?: MetricsGranularity | undefined
}

export type WindowLimits = { nowMs: number; hourlyRetentionDays: number; dailyRetentionDays: number }

export type Window = {
  /** What is counted, as the answer says it (Unix ms): from inclusive, to exclusive. */
  startMs: number
  endMs: number
  /** The whole hours of it, the current one included; undefined: nothing is left to be counted. */
  span: Span | undefined
}

/** Why a window cannot be counted, in the words of the answer; undefined when it can. */
export function findWindowProblem(request: WindowRequest, limits: WindowLimits): string | undefined {
  const { startMs, endMs } = resolveRequest(request, limits)
  if (startMs >= endMs) return 'start: must be before end'
  if (request.granularity === 'hour' && startMs < firstHour(limits)) {
    return `granularity: hours are kept for ${limits.hourlyRetentionDays} days; choose day, week or month, or a later start`
  }
  return undefined
}

/**
 * The window that is counted for a request without a problem. The current hour is counted as far as it has come, from its
 * beginning, because a window in it would otherwise hold nothing.
 */
export function chooseWindow(request: WindowRequest, limits: WindowLimits): Window {
  const { nowMs } = limits
  const { startMs, endMs } = resolveRequest(request, limits)
  const currentHourMs = floorTo(nowMs, hourMs)
  const nextHourMs = currentHourMs + hourMs
  const isInCurrentHour = (timeMs: number) => timeMs > currentHourMs && timeMs < nextHourMs
  const fromMs = isInCurrentHour(startMs) ? currentHourMs : startMs
  if (endMs !== nowMs && !isInCurrentHour(endMs)) return cutWindow(fromMs, endMs, limits)
  const { startMs: cutStartMs, span } = cutWindow(fromMs, nextHourMs, limits)
  if (span === undefined || cutStartMs >= nowMs) return { startMs: nowMs, endMs: nowMs, span: undefined }
  return { startMs: cutStartMs, endMs: nowMs, span }
}

/** The equal window just before, cut in the same way. */
export function choosePreviousWindow({ startMs, endMs }: Window, limits: WindowLimits): Window {
  return cutWindow(startMs - (endMs - startMs), startMs, limits)
}

function resolveRequest(request: WindowRequest, { nowMs }: WindowLimits): { startMs: number; endMs: number } {
  const { endMs = nowMs } = request
  const { startMs = endMs - defaultWindowMs } = request
  return { startMs: Math.max(startMs, endMs - maxWindowMs), endMs }
}

/** Cuts a window to what is stored: whole hours, before these whole days, and before those nothing. */
function cutWindow(startMs: number, endMs: number, limits: WindowLimits): Window {
  const unitOf = (timeMs: number) => (timeMs < firstHour(limits) ? dayMs : hourMs)
  const fromMs = Math.max(ceilTo(startMs, unitOf(startMs)), firstDay(limits))
  const toMs = floorTo(endMs, unitOf(endMs))
  if (fromMs >= toMs) return { startMs: toMs, endMs: toMs, span: undefined }
  return { startMs: fromMs, endMs: toMs, span: { fromMs, toMs } }
}

/** From here on hours are kept for certain; before it, days. */
function firstHour({ nowMs, hourlyRetentionDays }: WindowLimits): number {
  return floorTo(nowMs - hourlyRetentionDays * dayMs, dayMs)
}

function firstDay({ nowMs, dailyRetentionDays }: WindowLimits): number {
  return floorTo(nowMs - dailyRetentionDays * dayMs, dayMs)
}

export type Bucket = {
  /** Where it begins by the calendar, also when the window begins later (Unix ms). */
  periodMs: number
  span: Span
}

/** The buckets of a window in order, the first and the last cut to it. None without a granularity. */
export function listBuckets({ span }: Window, granularity: MetricsGranularity | undefined): Bucket[] {
  const buckets: Bucket[] = []
  if (span === undefined || granularity === undefined) return buckets
  let periodMs = startOfBucket(granularity, span.fromMs)
  while (periodMs < span.toMs) {
    const nextMs = startOfNextBucket(granularity, periodMs)
    buckets.push({
      periodMs,
      span: { fromMs: Math.max(periodMs, span.fromMs), toMs: Math.min(nextMs, span.toMs) },
    })
    periodMs = nextMs
  }
  return buckets
}

/** The first Monday of Unix time. */
const firstMondayMs = 4 * dayMs
const weekMs = 7 * dayMs

function startOfBucket(granularity: MetricsGranularity, timeMs: number): number {
  if (granularity === 'hour') return floorTo(timeMs, hourMs)
  if (granularity === 'day') return floorTo(timeMs, dayMs)
  if (granularity === 'week') return firstMondayMs + floorTo(timeMs - firstMondayMs, weekMs)
  const time = new Date(timeMs)
  return Date.UTC(time.getUTCFullYear(), time.getUTCMonth())
}

function startOfNextBucket(granularity: MetricsGranularity, periodMs: number): number {
  if (granularity === 'hour') return periodMs + hourMs
  if (granularity === 'day') return periodMs + dayMs
  if (granularity === 'week') return periodMs + weekMs
  const time = new Date(periodMs)
  return Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + 1)
}

export function floorTo(timeMs: number, unitMs: number): number {
  return Math.floor(timeMs / unitMs) * unitMs
}

function ceilTo(timeMs: number, unitMs: number): number {
  return Math.ceil(timeMs / unitMs) * unitMs
}
