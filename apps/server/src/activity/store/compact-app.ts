import type { Db } from '../../db/connection.ts'
import { formatClientKey, writeClientKey } from '../client-key.ts'
import { contextOf, decodeSegment, keyOffsetOf, type ObservationContext, type Segment, timeOf } from '../segment.ts'
import type { AppState } from './app-state.ts'
import { applyObservations, type Batch, noNumber } from './apply-observations.ts'
import { loadState, needColumns } from './load-state.ts'
import {
  appExists,
  deleteSegments,
  deleteSegmentsOfApp,
  findApp,
  insertApp,
  listDevices,
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
  const { batch, newClients } = await resolveDevices(context, trx, state, segments)
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

/** Gives every device its number. New ones are numbered in the order in which they come. */
async function resolveDevices(
  context: StoreContext,
  trx: Db,
  state: AppState,
  segments: Segment[],
): Promise<{ batch: Batch; newClients: string[] }> {
  const count = segments.reduce((sum, segment) => sum + segment.count, 0)
  const batch: Batch = {
    count,
    numbers: new Uint32Array(count),
    times: new Float64Array(count),
    contexts: new Uint32Array(count),
    table: segments.flatMap(({ contexts }) => contexts),
    refusedReleases: new Set(),
  }
  batch.refusedReleases = await findRefusedReleases(trx, state, batch.table)
  await learnDevices(trx, state, listUnknown(state, segments))
  const newClients: string[] = []
  let at = 0
  let firstContext = 0
  for (const segment of segments) {
    for (let index = 0; index < segment.count; index += 1) {
      const offset = keyOffsetOf(index)
      batch.numbers[at] = numberDevice(context, state, segment.words, offset, newClients)
      batch.times[at] = timeOf(segment, index)
      batch.contexts[at] = firstContext + contextOf(segment, index)
      at += 1
    }
    firstContext += segment.contexts.length
  }
  return { batch, newClients }
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

function listUnknown(state: AppState, segments: Segment[]): string[] {
  const unknown = new Set<string>()
  for (const { words, count } of segments) {
    for (let index = 0; index < count; index += 1) {
      const offset = keyOffsetOf(index)
      if (state.directory.find(words, offset) === undefined) unknown.add(formatClientKey(words, offset))
    }
  }
  return [...unknown]
}

/** Looks up devices that are not in memory. Where all of them are, whoever is missing is new. */
export async function learnDevices(trx: Db, state: AppState, clients: string[]): Promise<void> {
  if (clients.length === 0 || state.directory.count() === state.deviceCount) return
  const key = new Uint32Array(4)
  for (const { client, number } of await listDevices(trx, { app: state.app, clients })) {
    writeClientKey(client, key, 0)
    state.directory.set(key, 0, number)
  }
}

/** The number of a device; a new one gets the next, and its key is added to `newClients`. */
export function numberDevice(
  context: Pick<StoreContext, 'maxDevices'>,
  state: AppState,
  words: Uint32Array,
  offset: number,
  newClients: string[],
): number {
  const known = state.directory.find(words, offset)
  if (known !== undefined) return known
  if (state.deviceCount >= context.maxDevices) return noNumber
  const number = state.deviceCount
  state.deviceCount += 1
  state.directory.set(words, offset, number)
  newClients.push(formatClientKey(words, offset))
  return number
}
