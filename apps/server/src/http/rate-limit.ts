import { LRUCache } from 'lru-cache'
import { AppError } from '../errors.ts'

const windowMs = 60_000

/** Callers remembered at most: a flood of invented callers costs this much memory and no more (about 20 MB). */
const maxCallers = 100_000

export type RateLimiter = {
  /** Counts one request. Returns the seconds to wait when the caller is over its limit, else undefined. */
  take: (caller: string) => number | undefined
}

/** Fixed windows of a minute per caller, counted from the caller's first request. `requestsPerMinute` undefined: no limit. */
export function createRateLimiter(requestsPerMinute: number | undefined): RateLimiter {
  if (requestsPerMinute === undefined) return { take: () => undefined }
  const windows = new LRUCache<string, { count: number }>({ max: maxCallers, ttl: windowMs, ttlResolution: 100 })
  const secondsLeft = (caller: string) => Math.max(1, Math.ceil(windows.getRemainingTTL(caller) / 1000))
  return {
    take(caller) {
      const window = windows.get(caller)
      if (window === undefined) {
        windows.set(caller, { count: 1 })
        return undefined
      }
      window.count += 1
      return window.count > requestsPerMinute ? secondsLeft(caller) : undefined
    },
  }
}

export function refuseOverLimit(retryAfterSeconds: number | undefined): void {
  if (retryAfterSeconds === undefined) return
  throw new AppError('rate_limited', `Wait ${retryAfterSeconds} seconds.`, { retryAfterSeconds })
}
