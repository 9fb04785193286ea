import type { Db } from '../../db/connection.ts'
import { partitionOf } from '../../db/month-partitions.ts'
import { dayMs, hourMs } from '../../time.ts'
import type { AppState } from './app-state.ts'
import type { Changes } from './apply-observations.ts'
import { addToUnit, lengthOfKind, type UnitKind } from './bitmap-units.ts'
import { serializeSorted } from './bitmaps.ts'
import { encodeChanges, findFirstMsOf } from './device-columns.ts'
import { ensurePartition, tableOf } from './partitions.ts'
import {
  addEventCounts,
  deleteHourTotals,
  insertDeviceChange,
  insertDevices,
  insertInstallStates,
  insertParts,
  insertReleases,
  type PartRow,
  updateApp,
} from './queries.ts'
import { type NumberList, sortNumbers } from './sort-numbers.ts'
import type { StoreContext } from './store-context.ts'

/** Numbers that are to be added to one bitmap. */
type Addition = Omit<PartRow, 'devices'> & { sorted: Uint32Array }

/** Writes what applying observations has changed, as the next change of the app. The caller holds its lock. */
export async function storeChanges(
  context: StoreContext,
  trx: Db,
  state: AppState,
  changes: Changes,
  newClients: string[],
): Promise<void> {
  const { app, appId } = state
  const seq = state.seq + 1
  context.dropped += changes.dropped
  if (changes.dropped > 0) {
    context.log.warn(
      { appId, observations: changes.dropped },
      'not counted: too many devices, release versions or patch numbers',
    )
  }
  if (newClients.length > 0) {
    await insertDevices(trx, { app, clients: newClients, firstNumber: state.deviceCount - newClients.length })
  }
  await storeNames(trx, state)
  const data = encodeChanges(state.columns, changes.devices)
  if (changes.devices.length > 0) await insertDeviceChange(trx, { app, seq, data })
  const additions = { hours: listAdditions(context, changes, 'hours'), days: listAdditions(context, changes, 'days') }
  for (const kind of ['hours', 'days'] as const) await storeAdditions(context, trx, { app, kind, seq }, additions[kind])
  const hoursMs = [...new Set(additions.hours.map(({ startMs }) => startMs))]
  if (hoursMs.length > 0) await deleteHourTotals(trx, { app, startsMs: hoursMs })
  if (changes.eventCounts.length > 0) await addEventCounts(trx, { app, counts: changes.eventCounts })
  if (state.firstMs !== undefined)
    state.firstMs = Math.min(state.firstMs, findFirstMsOf(state.columns, changes.devices))
  await advance(trx, state, { seq })
  state.changeBytes += data.length
  for (const number of changes.devices) state.dirtyChunks.add(number >>> 16)
  for (const hour of hoursMs) state.hourTotals.delete(hour)
  for (const kind of ['hours', 'days'] as const) rememberAdditions(context, state, kind, additions[kind])
}

/** Makes `seq` the last change of the app. A new epoch makes void whatever is held of it in memory. */
export async function advance(trx: Db, state: AppState, next: { seq: number; epoch?: number }): Promise<void> {
  const { seq, epoch = state.epoch } = next
  const { app, deviceCount, firstMs = Number.POSITIVE_INFINITY } = state
  await updateApp(trx, { app, seq, epoch, deviceCount, firstMs: Number.isFinite(firstMs) ? firstMs : null })
  state.seq = seq
  state.epoch = epoch
}

async function storeNames(trx: Db, state: AppState): Promise<void> {
  const { app, releases, states } = state
  const versions = Array.from({ length: releases.count() - state.storedReleases }, (_, index) =>
    String(releases.versionOf(state.storedReleases + index)),
  )
  if (versions.length > 0) await insertReleases(trx, { app, fromNumber: state.storedReleases, versions })
  const newStates = Array.from({ length: states.count() - state.storedStates }, (_, index) =>
    states.get(state.storedStates + index),
  )
  if (newStates.length > 0) {
    await insertInstallStates(trx, { app, fromNumber: state.storedStates, states: newStates })
  }
  state.storedReleases = releases.count()
  state.storedStates = states.count()
}

/** Leaves out what is so old that it would be dropped again. */
function listAdditions(context: StoreContext, changes: Changes, kind: UnitKind): Addition[] {
  const keepFromMs = oldestKeptMs(context, kind)
  const unitMs = lengthOfKind[kind]
  return changes.sightings.flatMap(({ key, hours }) => {
    const lists = new Map<number, NumberList[]>()
    for (const [hour, list] of hours) {
      const startMs = hour - (hour % unitMs)
      if (startMs < keepFromMs) continue
      const ofUnit = lists.get(startMs)
      if (ofUnit === undefined) lists.set(startMs, [list])
      else ofUnit.push(list)
    }
    return [...lists].map(([startMs, ofUnit]) => ({ startMs, key, sorted: sortNumbers(ofUnit) }))
  })
}

/** The start of the first hour or day of which something is kept (Unix ms). */
export function oldestKeptMs(context: StoreContext, kind: UnitKind): number {
  const days = kind === 'hours' ? context.hourlyRetentionDays : context.dailyRetentionDays
  return Math.floor(context.now() / dayMs - days) * dayMs
}

async function storeAdditions(
  context: StoreContext,
  trx: Db,
  target: { app: number; kind: UnitKind; seq: number },
  additions: Addition[],
): Promise<void> {
  for (const { startMs } of additions) {
    const partition = partitionOf(tableOf[target.kind], new Date(startMs))
    if (context.partitions.has(partition.name)) continue
    // On another connection: it must be there for everybody, whatever becomes of this transaction.
    await ensurePartition(context.partitionDb, partition)
    context.partitions.add(partition.name)
  }
  const parts = additions.map(({ startMs, key, sorted }) => ({ startMs, key, devices: serializeSorted(sorted) }))
  await insertParts(trx, { ...target, parts })
}

function rememberAdditions(context: StoreContext, state: AppState, kind: UnitKind, additions: Addition[]): void {
  for (const { startMs, key, sorted } of additions) {
    const name = `${kind}:${startMs}`
    state.parts.set(name, (state.parts.get(name) ?? 0) + 1)
    for (const [unitName, unit] of context.units.listAt(state.app, startMs)) {
      const isHour = unitName.toMs - unitName.fromMs === hourMs
      // Making room for one may have evicted another.
      if (isHour !== (kind === 'hours') || unit.isEvicted) continue
      addToUnit(unit, key, sorted)
      context.units.set(unitName, unit)
    }
  }
}
