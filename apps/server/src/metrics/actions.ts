import { type MetricsGranularity, maxMetricsPoints } from '@godwit/contract'
import type { GroupBy, Span } from '../activity/activity-store.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { dayMs } from '../time.ts'
import {
  countEvents,
  findNewestRelease,
  findReleaseByVersion,
  listPatchTargets,
  type PatchEventType,
} from './queries.ts'
import {
  emptySummary,
  lookbackDays,
  type Summary,
  shareOf,
  sortVersions,
  summarizeDevices,
  summarizeEvents,
  type VersionCount,
} from './rules.ts'
import {
  type Bucket,
  choosePreviousWindow,
  chooseWindow,
  findWindowProblem,
  floorTo,
  listBuckets,
  type Window,
  type WindowLimits,
} from './windows.ts'

/** As the query of a request has it. */
export type WindowQuery = {
  start?: string | undefined
  end?: string | undefined
  granularity?: MetricsGranularity | undefined
}

/** The time that an answer speaks of: everything that was answered before is counted. */
async function beginCount(deps: Deps): Promise<number> {
  await deps.recorder.flush()
  return deps.clock().getTime()
}

type WindowRead = { window: Window; buckets: Bucket[]; limits: WindowLimits }

function readWindow(deps: Deps, nowMs: number, { start, end, granularity }: WindowQuery): WindowRead {
  const { hourlyRetentionDays, dailyRetentionDays } = deps.config
  const limits = { nowMs, hourlyRetentionDays, dailyRetentionDays }
  const request = { startMs: readTime(start), endMs: readTime(end), granularity }
  const problem = findWindowProblem(request, limits)
  if (problem !== undefined) throw new AppError('invalid_request', problem)
  const window = chooseWindow(request, limits)
  return { window, buckets: listBuckets(window, granularity), limits }
}

function readTime(value: string | undefined): number | undefined {
  return value === undefined ? undefined : Date.parse(value)
}

/** Points are made and checked where patch checks are answered: 100,000 hold them up for a tenth of a second. */
function refuseLongAnswer(points: number): void {
  if (points <= maxMetricsPoints) return
  throw new AppError(
    'invalid_request',
    `granularity: the answer would have ${points} points, over ${maxMetricsPoints}; choose a larger one or a shorter window`,
  )
}

/** undefined when nothing was recorded before the window began: there is nothing to compare with. */
async function findPreviousWindow(
  deps: Deps,
  input: { appId: string; window: Window; limits: WindowLimits },
): Promise<Window | undefined> {
  const firstMs = await deps.activityStore.findFirstTime({ appId: input.appId })
  if (firstMs === undefined || firstMs >= input.window.startMs) return undefined
  return choosePreviousWindow(input.window, input.limits)
}

export type VersionDistribution = { asOfMs: number; sinceMs: number; total: number; versions: VersionCount[] }

export async function countVersions(deps: Deps, { appId }: { appId: string }): Promise<VersionDistribution> {
  const asOfMs = await beginCount(deps)
  const sinceMs = asOfMs - deps.config.activeWindowDays * dayMs
  const versions = sortVersions(await deps.activityStore.countVersions({ appId, sinceMs }))
  return { asOfMs, sinceMs, total: versions.reduce((sum, { devices }) => sum + devices, 0), versions }
}

export type AdoptionPoint = { devices: number; target: number; share: number }

/** Of the newest release when none is named. */
export async function countAdoption(
  deps: Deps,
  input: { appId: string; query: WindowQuery; release?: string | undefined },
) {
  const { appId } = input
  const newest = await findNewestRelease(deps.db, { appId })
  const release =
    input.release === undefined || input.release === newest?.version
      ? newest
      : await findReleaseByVersion(deps.db, { appId, version: input.release })
  if (release === undefined) {
    const reason = input.release === undefined ? 'the app has no release' : 'the app has no release with this version'
    throw new AppError('not_found', `release_version: ${reason}`)
  }
  const asOfMs = await beginCount(deps)
  const { window, buckets } = readWindow(deps, asOfMs, input.query)
  const patches = await listPatchTargets(deps.db, { releaseId: release.id })
  const places: { periodMs: number | undefined; span: Window['span'] }[] =
    input.query.granularity === undefined ? [{ periodMs: undefined, span: window.span }] : buckets
  refuseLongAnswer(patches.length * places.length)
  const spans = places.flatMap(({ span }) => (span === undefined ? [] : [span]))
  const counts =
    spans.length === 0 || patches.length === 0
      ? []
      : await deps.activityStore.countAdoption({ appId, releaseVersion: release.version, patches, spans })
  return {
    asOfMs,
    window,
    releaseVersion: release.version,
    isLatest: release.id === newest?.id,
    periodsMs: places.map(({ periodMs }) => periodMs),
    patches: patches.map((patch, index) => ({
      ...patch,
      /** One for each period. */
      points: places.map((_, place): AdoptionPoint => {
        const { devices, target } = counts[index]?.[place] ?? { devices: 0, target: 0 }
        return { devices, target, share: shareOf(devices, target) }
      }),
    })),
  }
}

/** What is counted in a window and, where there is something to compare with, in the one before. */
export type Comparison = {
  asOfMs: number
  window: Window
  current: Summary
  previous: { window: Window; count: number } | undefined
}

async function compareWindows<By extends string>(
  deps: Deps,
  input: { appId: string; query: WindowQuery & { group_by?: By | undefined } },
  count: (span: Span, buckets: Bucket[], groupBy: By | undefined) => Promise<Summary>,
): Promise<Comparison> {
  const { appId, query } = input
  const asOfMs = await beginCount(deps)
  const { window, buckets, limits } = readWindow(deps, asOfMs, query)
  const current = window.span === undefined ? emptySummary : await count(window.span, buckets, query.group_by)
  refuseLongAnswer(current.groups.reduce((sum, { series }) => sum + series.length, 0))
  const before = await findPreviousWindow(deps, { appId, window, limits })
  if (before === undefined) return { asOfMs, window, current, previous: undefined }
  const previous = before.span === undefined ? emptySummary : await count(before.span, [], undefined)
  return { asOfMs, window, current, previous: { window: before, count: previous.count } }
}

export async function countUniqueUsers(
  deps: Deps,
  { appId, query }: { appId: string; query: WindowQuery & { group_by?: GroupBy | undefined } },
): Promise<Comparison> {
  return await compareWindows(deps, { appId, query }, async (span, buckets, groupBy) => {
    const spans = [span, ...buckets.map((bucket) => bucket.span)]
    return summarizeDevices(await deps.activityStore.countDevices({ appId, spans, groupBy }), toPeriods(buckets))
  })
}

export async function countPatchEvents(
  deps: Deps,
  input: {
    appId: string
    type: PatchEventType
    /** undefined: all of the app. */
    releaseVersion?: string
    query: WindowQuery & { group_by?: 'release' | 'patch' | undefined }
  },
): Promise<Comparison> {
  const { appId, type, releaseVersion, query } = input
  await deps.recorder.flush()
  await deps.activityStore.compact({ appId })
  return await compareWindows(deps, { appId, query }, async (span, buckets, groupBy) => {
    const bucketsFromMs = buckets.map((bucket) => bucket.span.fromMs)
    const rows = await countEvents(deps.db, { appId, type, span, bucketsFromMs, releaseVersion, groupBy })
    return summarizeEvents(rows, toPeriods(buckets), groupBy === 'patch' ? 'numbers' : 'text')
  })
}

function toPeriods(buckets: Bucket[]): number[] {
  return buckets.map(({ periodMs }) => periodMs)
}

/** To the millisecond, up to the time of the answer and with it. */
export async function countNewDevices(deps: Deps, { appId, windowDays }: { appId: string; windowDays: number }) {
  const asOfMs = await beginCount(deps)
  const fromMs = asOfMs - windowDays * dayMs
  const spans = [
    { fromMs, toMs: asOfMs + 1 },
    { fromMs: fromMs - windowDays * dayMs, toMs: fromMs },
  ]
  const [current = 0, previous = 0] = await deps.activityStore.countNewDevices({ appId, spans })
  const firstMs = await deps.activityStore.findFirstTime({ appId })
  return { asOfMs, current, previous: firstMs === undefined || firstMs >= fromMs ? null : previous }
}

/** The devices of every hour of the whole days before today. */
export async function countRecentHours(deps: Deps, { appId }: { appId: string }) {
  const asOfMs = await beginCount(deps)
  const toMs = floorTo(asOfMs, dayMs)
  const fromMs = toMs - lookbackDays * dayMs
  return { asOfMs, fromMs, devicesByHour: await deps.activityStore.countHourly({ appId, fromMs, toMs }) }
}

export async function deleteDevice(deps: Deps, input: { appId: string; clientId: string }): Promise<void> {
  await deps.recorder.flush()
  if (!(await deps.activityStore.removeDevice(input))) throw new AppError('not_found')
}
