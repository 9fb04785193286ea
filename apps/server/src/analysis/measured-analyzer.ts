import type { ByteSource } from '../analyzer/archive.ts'
import type { Analyzer } from '../analyzer/run-analyzer.ts'
import { runInSpan, type TracedSpan, type Tracing } from '../telemetry/tracing.ts'

type Kind = 'analyzed' | 'unanalyzable' | 'failed'

/** An analyzer that counts what it did. */
export type MeasuredAnalyzer = Analyzer & {
  measure: () => { running: number; done: Record<Kind, number>; seconds: number }
}

export function measureAnalyzer(analyzer: Analyzer, { tracing }: { tracing: Tracing | undefined }): MeasuredAnalyzer {
  const done = { analyzed: 0, unanalyzable: 0, failed: 0 }
  let running = 0
  let seconds = 0
  return {
    ...analyzer,
    analyze: async (source, signal) => {
      const startedAt = performance.now()
      running += 1
      try {
        const span = tracing?.startChild({ name: 'analyze archive' })
        const outcome = await runInSpan(span, () => analyzer.analyze(readWithin(span, source), signal))
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

/** What is read is asked for by messages of another process, which know nothing of the span. */
function readWithin(span: TracedSpan | undefined, source: ByteSource): ByteSource {
  if (span === undefined) return source
  return { ...source, read: (offset, length) => span.run(() => source.read(offset, length)) }
}
