import { BlobsUnavailableError } from '../blob-store.ts'

export type ConcurrencyLimit = {
  /** Resolves with what gives the place back, once there is one; refused when there is none in time. */
  acquire: (what: string) => Promise<() => void>
}

export function limitConcurrency({ limit, waitMs }: { limit: number; waitMs: number }): ConcurrencyLimit {
  let taken = 0
  const waiting: (() => void)[] = []
  const release = () => {
    const next = waiting.shift()
    if (next === undefined) taken -= 1
    else next()
  }
  return {
    async acquire(what) {
      if (taken < limit) taken += 1
      else await waitForPlace(what)
      let isReleased = false
      return () => {
        if (!isReleased) release()
        isReleased = true
      }
    },
  }

  async function waitForPlace(what: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const begin = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(begin), 1)
        reject(new BlobsUnavailableError(`${what}: ${limit} run already`))
      }, waitMs)
      waiting.push(begin)
    })
  }
}
