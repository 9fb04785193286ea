import type { Analyzer } from '../analyzer/run-analyzer.ts'

type Kind = 'analyzed' | 'unanalyzable' | 'failed'

/** An analyzer that counts what it did. */
export type MeasuredAnalyzer = Analyzer & {
  measure: () => { running: number; done: Record<Kind, number>; seconds: number }
}

export function measureAnalyzer(analyzer: Analyzer): MeasuredAnalyzer {
  const done = { analyzed: 0, unanalyzable: 0, failed: 0 }
  let running = 0
  let seconds = 0
  return {
    ...analyzer,
    analyze: async (...input) => {
      const startedAt = performance.now()
      running += 1
      try {
        const outcome = await analyzer.analyze(...input)
        done[outcome.kind] += 1
        return outcome
      } finally {
        running -= 1
        seconds += (performance.now() - startedAt) / 1000
      }
    },
    measure: () => ({ running, done: { ...done }, seconds }),
  }
}
