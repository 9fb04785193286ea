import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { AppError } from '../errors.ts'
import { chooseTellFrom, isSameWindow, type SharedCounts, secondsToNextWindow } from './shared-counts.ts'

/** Callers remembered at most: a flood of invented callers costs this much memory and no more (about 20 MB). */
const maxCallers = 100_000

export type RateLimiter = {
  /** Counts one request. Returns the seconds to wait when the caller is over its limit, else undefined. */
  take: (caller: string) => number | undefined
}

/** `key`: by which other instances know the caller, once they have to. */
type Counted = { own: number; key: string | undefined }

/**
 * Windows of a minute per caller, over all instances when they share their counts. `requestsPerMinute` undefined: no
 * limit.
 */
export function createRateLimiter(
  requestsPerMinute: number | undefined,
  shared?: { counts: SharedCounts; name: string },
): RateLimiter {
  if (requestsPerMinute === undefined) return { take: () => undefined }
  const tellFrom = chooseTellFrom(requestsPerMinute)
  const callers = new LRUCache<string, Counted>({ max: maxCallers })
  const others = new Map<string, number>()
  const changed = new Map<string, Counted>()
  let startedMs = Date.now()

  const clear = () => {
    callers.clear()
    others.clear()
    changed.clear()
    startedMs = Date.now()
  }
  shared?.counts.add(shared.name, {
    takeChanged: () => {
      const counts = [...changed].map(([key, { own }]) => ({ key, count: Math.min(own, requestsPerMinute + 1) }))
      changed.clear()
      return counts
    },
    setOthers: (key, count) => void others.set(key, count),
    clear,
  })
  const share = (caller: string, counted: Counted): number => {
    counted.key ??= createHash('sha256').update(caller).digest('base64url').slice(0, 16)
    // Over the limit by itself is over the limit, by however much.
    if (counted.own <= requestsPerMinute + 1) changed.set(counted.key, counted)
    return others.get(counted.key) ?? 0
  }
  return {
    take(caller) {
      const nowMs = Date.now()
      if (!isSameWindow(startedMs, nowMs)) clear()
      const counted = callers.get(caller) ?? { own: 0, key: undefined }
      if (counted.own === 0) callers.set(caller, counted)
      counted.own += 1
      const used = counted.own + (shared !== undefined && counted.own >= tellFrom ? share(caller, counted) : 0)
      return used > requestsPerMinute ? secondsToNextWindow(nowMs) : undefined
    },
  }
}

export function refuseOverLimit(retryAfterSeconds: number | undefined): void {
  if (retryAfterSeconds === undefined) return
  throw new AppError('rate_limited', `Wait ${retryAfterSeconds} seconds.`, { retryAfterSeconds })
}
