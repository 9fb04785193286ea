/**
 * Upper bounds of the buckets in seconds: from what the device door takes for a check to a request that is given up. One
 * set for all, so that dashboards can lay one source over another.
 */
export const bucketBounds = [
  0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const

/** How long something took each time, in buckets of plain numbers: the device door counts 50,000 of them a second. */
export type Durations = {
  add: (seconds: number) => void
  /** `counts`: per bucket, the last one without a bound. */
  read: () => { counts: readonly number[]; sum: number }
}

export function createDurations(): Durations {
  const counts: number[] = new Array(bucketBounds.length + 1).fill(0)
  let sum = 0
  return {
    add: (seconds) => {
      let bucket = 0
      while (bucket < bucketBounds.length && seconds > (bucketBounds[bucket] ?? 0)) bucket += 1
      counts[bucket] = (counts[bucket] ?? 0) + 1
      sum += seconds
    },
    read: () => ({ counts, sum }),
  }
}

export function secondsSince(startedAtMs: number): number {
  return (performance.now() - startedAtMs) / 1000
}
