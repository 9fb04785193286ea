import { formatClientKey, readClientKey } from '../client-key.ts'
import type { AppState } from './app-state.ts'
import { changeApp, compactSegments, findOrInsertApp } from './compact-app.ts'
import { encodeChanges } from './device-columns.ts'
import { needColumns } from './load-state.ts'
import { learnDevices } from './number-devices.ts'
import {
  deleteAllHourTotals,
  deleteDevice,
  deleteEventsOfDevice,
  findLastSegmentId,
  insertDeviceChange,
  insertRemovedDevice,
  subtractEventCounts,
} from './queries.ts'
import { advance } from './store-changes.ts'
import type { StoreContext } from './store-context.ts'

/**
 * Takes a device out of every count, from the next question on: its key and its events are deleted, and its number is left
 * out wherever a bitmap has it, until it is taken out there too. false: nothing is recorded of it.
 */
export async function removeDevice(
  context: StoreContext,
  input: { appId: string; clientId: string },
): Promise<boolean> {
  // What was recorded of a new app may not have been compacted yet.
  if (!(await findOrInsertApp(context, input.appId))) return false
  const removed = await changeApp(context, { appId: input.appId }, async (trx, state) => {
    // First the events: those that are found have their observations among the segments, or these are counted already.
    const counts = await deleteEventsOfDevice(trx, input)
    const target = (await findLastSegmentId(trx, { appId: input.appId })) ?? -1
    for (let last: number | undefined = -1; last !== undefined && last < target; ) {
      last = (await compactSegments(context, trx, state)).lastSegmentId
    }
    const { app } = state
    if (counts.length > 0) await subtractEventCounts(trx, { app, counts })
    const key = readClientKey(input.clientId)
    const client = formatClientKey(key, 0)
    await learnDevices(trx, state, [client])
    const number = state.directory.find(key, 0)
    if (number === undefined) return counts.length > 0
    await needColumns(trx, state)
    forget(state, key, number)
    await deleteDevice(trx, { app, client })
    await insertRemovedDevice(trx, { app, number })
    await deleteAllHourTotals(trx, { app })
    const seq = state.seq + 1
    await insertDeviceChange(trx, { app, seq, data: encodeChanges(state.columns, Uint32Array.of(number)) })
    // It may have been the first.
    state.firstMs = undefined
    await advance(trx, state, { seq, epoch: state.epoch + 1 })
    context.units.dropApp(app)
    return true
  })
  return removed ?? false
}

function forget(state: AppState, key: Uint32Array, number: number): void {
  const chunk = state.columns.chunkOf(number)
  const at = number & 0xffff
  chunk.firstMs[at] = 0
  chunk.lastMs[at] = 0
  chunk.state[at] = 0
  chunk.release[at] = 0
  state.directory.remove(key, 0)
  state.removed.add(number)
  state.dirtyChunks.add(number >>> 16)
  state.hourTotals.clear()
}
