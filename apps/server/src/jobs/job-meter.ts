import { createDurations, type Durations, secondsSince } from '../telemetry/durations.ts'

const outcomes = ['completed', 'failed'] as const

export type JobMeter = {
  run: <Result>(queue: string, work: () => Promise<Result>) => Promise<Result>
  measure: () => { queue: string; outcome: string; durations: Durations }[]
}

/** Counts what the jobs of this process took, and how they ended. */
export function createJobMeter(queues: readonly string[]): JobMeter {
  const counts = queues.flatMap((queue) =>
    outcomes.map((outcome) => ({ queue, outcome, durations: createDurations() })),
  )
  const settle = (queue: string, outcome: (typeof outcomes)[number], startedAtMs: number) => {
    const count = counts.find((known) => known.queue === queue && known.outcome === outcome)
    count?.durations.add(secondsSince(startedAtMs))
  }
  return {
    run: async (queue, work) => {
      const startedAtMs = performance.now()
      try {
        const result = await work()
        settle(queue, 'completed', startedAtMs)
        return result
      } catch (error) {
        settle(queue, 'failed', startedAtMs)
        throw error
      }
    },
    measure: () => counts,
  }
}
