import { createDurations, type Durations, secondsSince } from '../telemetry/durations.ts'
import { runInSpan, type Tracing } from '../telemetry/tracing.ts'

const outcomes = ['completed', 'failed'] as const

export type JobMeter = {
  /** `traceparent`: of what asked for the job. */
  run: <Result>(queue: string, work: () => Promise<Result>, traceparent?: string) => Promise<Result>
  measure: () => { queue: string; outcome: string; durations: Durations }[]
}

/** Counts and traces what the jobs of this process took, and how they ended. */
export function createJobMeter(queues: readonly string[], { tracing }: { tracing?: Tracing | undefined }): JobMeter {
  const counts = queues.flatMap((queue) =>
    outcomes.map((outcome) => ({ queue, outcome, durations: createDurations() })),
  )
  const settle = (queue: string, outcome: (typeof outcomes)[number], startedAtMs: number) => {
    const count = counts.find((known) => known.queue === queue && known.outcome === outcome)
    count?.durations.add(secondsSince(startedAtMs))
  }
  return {
    run: async (queue, work, traceparent) => {
      const startedAtMs = performance.now()
      try {
        const result = await runInSpan(tracing?.startJob({ queue, traceparent }), work)
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
