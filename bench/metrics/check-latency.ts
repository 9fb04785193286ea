import { setTimeout as sleep } from 'node:timers/promises'
import { createDeviceApi } from '../simulate/device-api.ts'

const lanes = 10
const checksPerSecond = 300

export type Latency = { checks: number; p50Ms: number; p99Ms: number }

/**
 * Checks while something else goes on, at a steady rate that leaves the server nearly idle: what is measured is how long
 * others make them wait. Each lane waits for its answer before its next turn.
 */
export async function measureChecks(
  baseUrl: string,
  options: { makeCheck: (turn: number) => object; during: () => Promise<unknown> },
): Promise<Latency> {
  const api = createDeviceApi(baseUrl, lanes)
  const timesMs: number[] = []
  const startedAt = performance.now()
  let turns = 0
  let isOver = false
  const run = async () => {
    while (!isOver) {
      const turn = turns++
      const dueMs = startedAt + (turn / checksPerSecond) * 1000
      if (dueMs > performance.now()) await sleep(dueMs - performance.now())
      const askedAt = performance.now()
      await api.check(options.makeCheck(turn))
      timesMs.push(performance.now() - askedAt)
    }
  }
  const running = Array.from({ length: lanes }, run)
  try {
    await options.during()
  } finally {
    isOver = true
  }
  await Promise.all(running)
  api.close()
  const sorted = timesMs.toSorted((a, b) => a - b)
  const percentile = (part: number) => sorted[Math.floor(sorted.length * part)] ?? Number.NaN
  return { checks: sorted.length, p50Ms: percentile(0.5), p99Ms: percentile(0.99) }
}
