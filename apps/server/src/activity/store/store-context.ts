import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Db } from '../../db/connection.ts'
import { type AppState, sizeOfState } from './app-state.ts'
import { createUnitCache, type UnitCache } from './bitmap-units.ts'

/** What is known of the devices of all apps together may take so much. */
const maxStateBytes = 1.5 * 1024 ** 3

/** What the worker stands on. */
export type StoreContext = {
  db: Db
  units: UnitCache
  states: LRUCache<string, AppState>
  /** Unix ms, as the service has it. */
  now: () => number
  hourlyRetentionDays: number
  dailyRetentionDays: number
  log: Pick<Logger, 'warn' | 'error' | 'info'>
  /** One change or question of an app at a time. */
  exclusively: <Result>(appId: string, work: () => Promise<Result>) => Promise<Result>
  /** Partitions that are there. */
  partitions: Set<string>
  /** Observations that were not counted. */
  dropped: number
}

export function createStoreContext(
  options: Omit<StoreContext, 'units' | 'states' | 'exclusively' | 'partitions' | 'dropped'> & { cacheBytes: number },
): StoreContext {
  const { cacheBytes, ...rest } = options
  const units = createUnitCache(cacheBytes)
  return {
    ...rest,
    units,
    states: new LRUCache<string, AppState>({ maxSize: maxStateBytes, sizeCalculation: sizeOfState }),
    exclusively: createQueues(),
    partitions: new Set(),
    dropped: 0,
  }
}

function createQueues(): StoreContext['exclusively'] {
  const last = new Map<string, Promise<unknown>>()
  return async (appId, work) => {
    const before = last.get(appId) ?? Promise.resolve()
    const mine = before.catch(() => undefined).then(work)
    last.set(appId, mine)
    try {
      return await mine
    } finally {
      if (last.get(appId) === mine) last.delete(appId)
    }
  }
}
