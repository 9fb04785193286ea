import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Db } from '../../db/connection.ts'
import { createReplicaReads, type ReplicaReads } from '../../db/open-replica.ts'
import { type AppState, sizeOfState } from './app-state.ts'
import { createUnitCache, type UnitCache } from './bitmap-units.ts'

/** What is known of the devices of all apps together may take so much. */
const maxStateBytes = 1.5 * 1024 ** 3

/** What is in memory of apps, those that were used least recently leaving first. */
export type StateCache = {
  get: (appId: string) => AppState | undefined
  set: (state: AppState) => void
  delete: (appId: string) => void
  appIds: () => string[]
  sizeBytes: () => number
}

/** What the worker stands on. */
export type StoreContext = {
  db: Db
  units: UnitCache
  states: StateCache
  /** Unix ms, as the service has it. */
  now: () => number
  /** For partitions, whose making must not wait for a connection that whoever needs them has. */
  partitionDb: Db
  /** Where questions are answered if it has all that they ask about. */
  replica: Db | undefined
  /** An app may have so many; whoever is new then is not counted. */
  maxDevices: number
  hourlyRetentionDays: number
  dailyRetentionDays: number
  log: Pick<Logger, 'warn' | 'error' | 'info'>
  /** One change or question of an app at a time. */
  exclusively: <Result>(appId: string, work: () => Promise<Result>) => Promise<Result>
  /** Partitions that are there. */
  partitions: Set<string>
  /** Since the start. `dropped`: observations that were not counted. */
  compactions: number
  compactedObservations: number
  dropped: number
  replicaReads: ReplicaReads
}

type Made =
  | 'units'
  | 'states'
  | 'exclusively'
  | 'partitions'
  | 'compactions'
  | 'compactedObservations'
  | 'dropped'
  | 'replicaReads'

export function createStoreContext(options: Omit<StoreContext, Made> & { cacheBytes: number }): StoreContext {
  const { cacheBytes, ...rest } = options
  const units = createUnitCache(cacheBytes)
  return {
    ...rest,
    units,
    states: createStateCache(),
    exclusively: createQueues(),
    partitions: new Set(),
    compactions: 0,
    compactedObservations: 0,
    dropped: 0,
    replicaReads: createReplicaReads(),
  }
}

function createStateCache(): StateCache {
  // A new object each time: the size of one that is there already is not calculated again.
  const cache = new LRUCache<string, { state: AppState }>({
    maxSize: maxStateBytes,
    sizeCalculation: ({ state }) => sizeOfState(state),
  })
  return {
    get: (appId) => cache.get(appId)?.state,
    set: (state) => void cache.set(state.appId, { state }),
    delete: (appId) => void cache.delete(appId),
    appIds: () => [...cache.keys()],
    sizeBytes: () => cache.calculatedSize,
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
