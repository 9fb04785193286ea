import type { Db } from '../../db/connection.ts'
import { hourMs } from '../../time.ts'
import { type AppState, createAppState } from './app-state.ts'
import type { UnitCache } from './bitmap-units.ts'
import { applyChanges, decodeChunk } from './device-columns.ts'
import {
  type AppRow,
  listChangedUnits,
  listChunkSeqs,
  listChunks,
  listDeviceChanges,
  listInstallStates,
  listReleases,
  listRemovedDevices,
} from './queries.ts'

/** Rows of one answer: a chunk takes up to 1.4 MB. */
const chunksAtOnce = 16
const changesAtOnce = 16
const statesAtOnce = 5000

/**
 * Brings what is in memory of an app up to the row, or reads all of it. The row and what is read here must be of the same
 * moment: under the app's lock, or in one snapshot.
 */
export async function loadState(db: Db, units: UnitCache, known: AppState | undefined, row: AppRow): Promise<AppState> {
  const canFollow = known !== undefined && known.app === row.id && known.epoch === row.epoch && known.seq <= row.seq
  if (canFollow && known.seq === row.seq) return known
  const state = canFollow ? known : createAppState(row)
  if (!canFollow) units.dropApp(row.id)
  await readNames(db, state)
  if (state.hasColumns) await readColumns(db, state, state.seq)
  if (canFollow) await forgetChangedUnits(db, units, state)
  else for (const number of await listRemovedDevices(db, { app: row.id })) state.removed.add(number)
  state.seq = row.seq
  state.deviceCount = row.device_count
  state.firstMs = row.first_ms ?? (row.device_count === 0 ? Number.POSITIVE_INFINITY : undefined)
  return state
}

async function readNames(db: Db, state: AppState): Promise<void> {
  const { app } = state
  for (const version of await listReleases(db, { app, fromNumber: state.storedReleases })) {
    state.releases.numberOf(version)
  }
  state.storedReleases = state.releases.count()
  for (;;) {
    const states = await listInstallStates(db, { app, fromNumber: state.storedStates, limit: statesAtOnce })
    for (const installs of states) state.states.load(installs)
    state.storedStates = state.states.count()
    if (states.length < statesAtOnce) return
  }
}

/** Reads what is known of each device, unless that is in memory. Of the same moment as the state. */
export async function needColumns(db: Db, state: AppState): Promise<void> {
  if (state.hasColumns) return
  await readColumns(db, state, -1)
  state.hasColumns = true
}

/** What has changed after `afterSeq`. */
async function readColumns(db: Db, state: AppState, afterSeq: number): Promise<void> {
  const { app, columns } = state
  for (let fromChunk = 0; ; ) {
    const chunks = await listChunks(db, { app, afterSeq, fromChunk, limit: chunksAtOnce })
    for (const { chunk, data } of chunks) decodeChunk(data, columns, chunk)
    const last = chunks.at(-1)
    if (last === undefined) break
    fromChunk = last.chunk + 1
  }
  state.chunkSeqs = []
  for (const { chunk, seq } of await listChunkSeqs(db, { app })) state.chunkSeqs[chunk] = seq
  for (let from = afterSeq; ; ) {
    const changes = await listDeviceChanges(db, { app, afterSeq: from, limit: changesAtOnce })
    for (const { seq, data } of changes) {
      state.changeBytes += data.length
      applyChanges(data, columns, (chunk) => {
        const isNewer = seq > (state.chunkSeqs[chunk] ?? -1)
        if (isNewer) state.dirtyChunks.add(chunk)
        return isNewer
      })
    }
    const last = changes.at(-1)
    if (last === undefined) break
    from = last.seq
  }
}

/** Another process has added to them. */
async function forgetChangedUnits(db: Db, units: UnitCache, state: AppState): Promise<void> {
  const { app, seq } = state
  for (const hour of await listChangedUnits(db, { app, kind: 'hours', afterSeq: seq })) {
    units.drop({ app, fromMs: hour, toMs: hour + hourMs })
    state.hourTotals.delete(hour)
  }
  for (const day of await listChangedUnits(db, { app, kind: 'days', afterSeq: seq })) {
    for (const [name] of units.listAt(app, day)) if (name.toMs - name.fromMs > hourMs) units.drop(name)
  }
}
