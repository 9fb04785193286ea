import type { Db } from '../../db/connection.ts'
import { formatClientKey, writeClientKey } from '../client-key.ts'
import type { AppState } from './app-state.ts'
import { noNumber } from './apply-observations.ts'
import { listDevices } from './queries.ts'
import type { StoreContext } from './store-context.ts'

/** Keys of devices in `words`: that of the first at `firstOffset`, that of the next `stride` words on. */
export type DeviceKeys = { words: Uint32Array; count: number; firstOffset: number; stride: number }

/** The number of each device, block by block. New ones are numbered in the order in which they come. */
export async function numberDevices(
  context: Pick<StoreContext, 'maxDevices'>,
  trx: Db,
  state: AppState,
  blocks: DeviceKeys[],
): Promise<{ numbers: Uint32Array; newClients: string[] }> {
  // Where all devices are in memory, whoever is missing is new.
  if (state.directory.count() < state.deviceCount) await learnDevices(trx, state, listUnknown(state, blocks))
  const numbers = new Uint32Array(blocks.reduce((sum, { count }) => sum + count, 0))
  const newClients: string[] = []
  let at = 0
  for (const { words, count, firstOffset, stride } of blocks) {
    for (let index = 0; index < count; index += 1) {
      numbers[at] = numberDevice(context, state, words, firstOffset + index * stride, newClients)
      at += 1
    }
  }
  return { numbers, newClients }
}

/** Looks up devices that are not in memory. */
export async function learnDevices(trx: Db, state: AppState, clients: string[]): Promise<void> {
  if (clients.length === 0 || state.directory.count() === state.deviceCount) return
  const key = new Uint32Array(4)
  for (const { client, number } of await listDevices(trx, { app: state.app, clients })) {
    writeClientKey(client, key, 0)
    state.directory.set(key, 0, number)
  }
}

function listUnknown(state: AppState, blocks: DeviceKeys[]): string[] {
  const unknown = new Set<string>()
  for (const { words, count, firstOffset, stride } of blocks) {
    for (let index = 0; index < count; index += 1) {
      const offset = firstOffset + index * stride
      if (state.directory.find(words, offset) === undefined) unknown.add(formatClientKey(words, offset))
    }
  }
  return [...unknown]
}

/** A new device gets the next number, and its key is added to `newClients`. */
function numberDevice(
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
