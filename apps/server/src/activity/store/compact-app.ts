import type { Db } from '../../db/connection.ts'
import {
  contextOf,
  decodeSegment,
  keyOffsetOf,
  type ObservationContext,
  type Segment,
  timeOf,
  wordsPerRecord,
} from '../segment.ts'
import type { AppState } from './app-state.ts'
import { applyObservations, type Batch } from './apply-observations.ts'
import { loadState, needColumns } from './load-state.ts'
import { numberDevices } from './number-devices.ts'
import {
  appExists,
  deleteSegments,
  deleteSegmentsOfApp,
  findApp,
  insertApp,
  listExistingReleases,
  listSegments,
  lockApp,
} from './queries.ts'
import { storeChanges } from './store-changes.ts'
import type { StoreContext } from './store-context.ts'

/** What one transaction compacts: 170,000 observations, half a second of work. */
const atOnce = { limit: 1000, sizeBytes: 4 * 1024 ** 2 }

/** `busy`: another process is at it. Otherwise the observations that were compacted. */
export type CompactResult = { busy: boolean; observations: number; lastSegmentId: number | undefined }

/**
 * Turns the oldest segments of an app into what the metrics count, in one transaction that also deletes them: whatever
 * breaks off in between leaves either all of it or nothing.
 */
export async function compactApp(
  context: StoreContext,
  input: { appId: string; skipLocked: boolean },
): Promise<CompactResult> {
  const { appId } = input
  const nothing = { busy: false, observations: 0, lastSegmentId: undefined }
  if (!(await findOrInsertApp(context, appId))) {
    await deleteSegmentsOfApp(context.db, { appId })
    return nothing
  }
  const done = await changeApp(context, input, (trx, state) => compactSegments(context, trx, state))
  return done ?? { ...nothing, busy: true }
}

/** Makes sure that there is a row to lock. false: there is no such app any more. */
export async function findOrInsertApp(context: StoreContext, appId: string): Promise<boolean> {
  if (!(await appExists(context.db, { appId }))) return false
  if ((await findApp(context.db, { appId })) === undefined) await insertApp(context.db, { appId })
  return true
}

/** The same as part of another change. */
export async function compactSegments(context: StoreContext, trx: Db, state: AppState): Promise<CompactResult> {
  const { appId } = state
  const rows = await listSegments(trx, { appId, ...atOnce })
  if (rows.length === 0) return { busy: false, observations: 0, lastSegmentId: undefined }
  await needColumns(trx, state)
  const segments = rows.flatMap(({ id, observations }) => readSegment(context, appId, id, observations))
  const { batch, newClients } = await joinSegments(context, trx, state, segments)
  const changes = applyObservations(state, batch)
  await storeChanges(context, trx, state, changes, newClients)
  await deleteSegments(trx, { ids: rows.map(({ id }) => id) })
  context.compactions += 1
  context.compactedObservations += batch.count
  return { busy: false, observations: batch.count, lastSegmentId: rows.at(-1)?.id }
}

/**
 * Runs a change of what is recorded of an app, under its lock and on its state as it is then. undefined: somebody else
 * holds the lock, or nothing is recorded of the app. The state in memory goes ahead of the commit: after a failure, when
 * nobody knows what was committed, it is read again.
 */
export async function changeApp<Result>(
  context: StoreContext,
  input: { appId: string; skipLocked?: boolean },
  change: (trx: Db, state: AppState) => Promise<Result>,
): Promise<Result | undefined> {
  const { appId } = input
  let app: number | undefined
  try {
    return await context.db.transaction().execute(async (trx) => {
      const row = await lockApp(trx, input)
      if (row === undefined) return undefined
      app = row.id
      const state = await loadState(trx, context.units, context.states.get(appId), row)
      const result = await change(trx, state)
      context.states.set(state)
      return result
    })
  } catch (error) {
    context.states.delete(appId)
    if (app !== undefined) context.units.dropApp(app)
    throw error
  }
}

function readSegment(context: StoreContext, appId: string, id: number, bytes: Buffer): Segment[] {
  try {
    return [decodeSegment(bytes)]
  } catch (error) {
    // It would stand in the way of all that follow.
    context.log.error({ err: error, appId, segmentId: id }, 'a segment of observations cannot be read and is dropped')
    return []
  }
}

/** The observations of all segments as one, with their devices' numbers. */
async function joinSegments(
  context: StoreContext,
  trx: Db,
  state: AppState,
  segments: Segment[],
): Promise<{ batch: Batch; newClients: string[] }> {
  const count = segments.reduce((sum, segment) => sum + segment.count, 0)
  const keys = segments.map(({ words, count }) => ({
    words,
    count,
    firstOffset: keyOffsetOf(0),
    stride: wordsPerRecord,
  }))
  const table = segments.flatMap(({ contexts }) => contexts)
  const refusedReleases = await findRefusedReleases(trx, state, table)
  const { numbers, newClients } = await numberDevices(context, trx, state, keys)
  const times = new Float64Array(count)
  const contexts = new Uint32Array(count)
  let at = 0
  let firstContext = 0
  for (const segment of segments) {
    for (let index = 0; index < segment.count; index += 1) {
      times[at] = timeOf(segment, index)
      contexts[at] = firstContext + contextOf(segment, index)
      at += 1
    }
    firstContext += segment.contexts.length
  }
  return { batch: { count, numbers, times, contexts, table, refusedReleases }, newClients }
}

/** Versions that are no releases of the app: anybody can invent them, and each has a number for the app's life. */
const maxInventedReleases = 1000

/** Of the versions that are new, those that are not counted any more. Releases of the app always are. */
export async function findRefusedReleases(
  trx: Db,
  state: AppState,
  table: ObservationContext[],
): Promise<Set<string | null>> {
  const { appId, releases } = state
  const versions = new Set(table.flatMap(({ release }) => (releases.has(release) ? [] : [String(release)])))
  const room = Math.max(0, maxInventedReleases - releases.count())
  if (versions.size <= room) return new Set()
  for (const version of await listExistingReleases(trx, { appId, versions: [...versions] })) versions.delete(version)
  return new Set([...versions].slice(room))
}
