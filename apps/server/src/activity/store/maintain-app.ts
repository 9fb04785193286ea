import type { Db } from '../../db/connection.ts'
import { dayMs, hourMs } from '../../time.ts'
import type { AppState } from './app-state.ts'
import { addPart, createUnit, disposeUnit, removeFromUnit, type Unit, type UnitKind } from './bitmap-units.ts'
import { serializeBitmap, sizeOfUnion } from './bitmaps.ts'
import { changeApp } from './compact-app.ts'
import { chunkDevices, encodeChunk } from './device-columns.ts'
import { needColumns } from './load-state.ts'
import {
  deleteDeviceChanges,
  deleteHourTotals,
  deleteParts,
  deleteRemovedDevices,
  insertHourTotals,
  insertParts,
  listParts,
  listUncountedHours,
  listUnits,
  listUnitsInParts,
  upsertChunk,
} from './queries.ts'
import { advance, oldestKeptMs } from './store-changes.ts'
import type { StoreContext } from './store-context.ts'

/** Parts of one bitmap that may gather while its hour or day goes on: each compaction adds one. */
const maxParts = { hours: 16, days: 64 }
/** Changes of devices are read at every start, so they are merged into the columns when they are half as large. */
const minChangeBytes = 1024 ** 2
const deviceBytes = 22

/** Keeps short what compacting makes long. Called after each compaction; mostly there is nothing to do. */
export async function tidyApp(context: StoreContext, appId: string): Promise<void> {
  const state = context.states.get(appId)
  if (state === undefined) return
  for (const [name, parts] of [...state.parts]) {
    const [kind, startMs] = name.split(':') as [UnitKind, string]
    if (parts >= maxParts[kind]) await mergeUnit(context, { appId, kind, startMs: Number(startMs) })
  }
  const columnsBytes = state.columns.count() * deviceBytes
  if (state.changeBytes > Math.max(minChangeBytes, columnsBytes / 2)) await mergeColumns(context, appId)
}

/** Makes one part of each bitmap whose hour or day is over, and counts those hours. */
export async function finishUnits(context: StoreContext, appId: string): Promise<void> {
  const state = context.states.get(appId)
  if (state === undefined) return
  const { app } = state
  const now = context.now()
  const over = { hours: now - (now % hourMs), days: now - (now % dayMs) }
  const uncounted = { app, fromMs: oldestKeptMs(context, 'hours'), toMs: over.hours }
  const hours = new Set(await listUncountedHours(context.db, uncounted))
  for (const { startMs } of await listUnitsInParts(context.db, {
    app,
    kind: 'hours',
    beforeMs: over.hours,
    minParts: 2,
  })) {
    hours.add(startMs)
  }
  for (const startMs of hours) await mergeUnit(context, { appId, kind: 'hours', startMs })
  const days = await listUnitsInParts(context.db, { app, kind: 'days', beforeMs: over.days, minParts: 2 })
  for (const { startMs } of days) await mergeUnit(context, { appId, kind: 'days', startMs })
}

/** Takes devices that were removed out of every bitmap, after which their numbers mean nothing any more. */
export async function purgeRemovedDevices(context: StoreContext, appId: string): Promise<void> {
  const numbers = [...(context.states.get(appId)?.removed ?? [])]
  const app = context.states.get(appId)?.app
  if (numbers.length === 0 || app === undefined) return
  for (const kind of ['hours', 'days'] as const) {
    for (const startMs of await listUnits(context.db, { app, kind }))
      await mergeUnit(context, { appId, kind, startMs, onlyWithRemoved: true })
  }
  await context.exclusively(appId, () =>
    changeApp(context, { appId }, async (trx, state) => {
      await deleteRemovedDevices(trx, { app, numbers })
      for (const number of numbers) state.removed.delete(number)
    }),
  )
}

async function mergeUnit(
  context: StoreContext,
  input: { appId: string; kind: UnitKind; startMs: number; onlyWithRemoved?: boolean },
): Promise<void> {
  const { kind, startMs } = input
  await context.exclusively(input.appId, () =>
    changeApp(context, input, async (trx, state) => {
      const { app } = state
      const unit = createUnit()
      try {
        for (const row of await listParts(trx, { app, kind, startsMs: [startMs] })) addPart(unit, row)
        const hasRemoved = removeFromUnit(unit, state.removed)
        if (input.onlyWithRemoved === true && !hasRemoved) return
        const seq = state.seq + 1
        await deleteParts(trx, { app, kind, startMs })
        await insertParts(trx, { app, kind, seq, parts: listMerged(unit, startMs) })
        if (kind === 'hours') await storeTotal(context, trx, state, startMs, unit)
        await advance(trx, state, { seq })
        state.parts.delete(`${kind}:${startMs}`)
      } finally {
        disposeUnit(unit)
      }
    }),
  )
}

function listMerged(unit: Unit, startMs: number) {
  return [...unit.entries.values()].flatMap(({ key, bitmap }) => {
    if (bitmap.isEmpty) return []
    bitmap.runOptimize()
    return [{ startMs, key, devices: serializeBitmap(bitmap) }]
  })
}

async function storeTotal(context: StoreContext, trx: Db, state: AppState, startMs: number, unit: Unit): Promise<void> {
  if (startMs + hourMs > context.now()) return
  const devices = sizeOfUnion([...unit.entries.values()].map(({ bitmap }) => bitmap))
  await deleteHourTotals(trx, { app: state.app, startsMs: [startMs] })
  await insertHourTotals(trx, { app: state.app, totals: [{ startMs, devices }] })
  state.hourTotals.set(startMs, devices)
}

/** Writes the chunks of the columns that have changed, and drops the changes. */
async function mergeColumns(context: StoreContext, appId: string): Promise<void> {
  await context.exclusively(appId, () =>
    changeApp(context, { appId }, async (trx, state) => {
      await needColumns(trx, state)
      const { app, seq } = state
      for (const index of state.dirtyChunks) {
        const chunk = state.columns.chunks[index] ?? state.columns.chunkOf(index * chunkDevices)
        await upsertChunk(trx, { app, chunk: index, seq, data: encodeChunk(chunk) })
        state.chunkSeqs[index] = seq
      }
      await deleteDeviceChanges(trx, { app, toSeq: seq })
      state.dirtyChunks.clear()
      state.changeBytes = 0
    }),
  )
}
