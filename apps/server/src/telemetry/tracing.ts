import type { IncomingHttpHeaders } from 'node:http'
import type { Logger } from 'pino'
import type { TracingConfig } from './tracing-settings.ts'

export type SpanAttributes = Record<string, string | number>

/** Something that takes time, of a trace that is recorded. */
export type TracedSpan = {
  traceId: string
  /** What is done in there, and in what it awaits, is part of the span until that ends. */
  run: <Result>(work: () => Result) => Result
  /** `failure`: of which kind. Never a message: it may quote what somebody sent. */
  end: (outcome?: { failure?: string | undefined; attributes?: SpanAttributes }) => void
}

/** Each is undefined when the trace is not recorded, so that what follows costs nothing. */
export type Tracing = {
  /** The trace goes on that the headers of the request name (W3C Trace Context), or a new one begins. */
  startRequest: (input: { method: string; route: string; headers: IncomingHttpHeaders }) => TracedSpan | undefined
  /** `traceparent`: of what asked for the job. */
  startJob: (input: { queue: string; traceparent: string | undefined }) => TracedSpan | undefined
  /** Within what runs now. `durationMs`: it is over, and took as long. */
  startChild: (input: {
    name: string
    attributes?: SpanAttributes
    durationMs?: number
    /** What another system does for us, and no work of this process. */
    isCall?: boolean
  }) => TracedSpan | undefined
  /** The W3C `traceparent` of what runs now, for whoever goes on with it. */
  findTraceparent: () => string | undefined
  /** Sends what is left. */
  stop: () => Promise<void>
}

/** Most servers trace nothing: the libraries (25 MB of memory) are read only by those that do. */
export async function startTracing(
  config: TracingConfig | undefined,
  options: { log: Logger },
): Promise<Tracing | undefined> {
  if (config === undefined) return undefined
  const { createOpenTelemetry } = await import('./open-telemetry.ts')
  return createOpenTelemetry(config, options)
}

/** Runs work as a span; just runs it when there is none. */
export async function runInSpan<Result>(span: TracedSpan | undefined, work: () => Promise<Result>): Promise<Result> {
  if (span === undefined) return await work()
  try {
    const result = await span.run(work)
    span.end()
    return result
  } catch (error) {
    span.end({ failure: nameFailure(error) })
    throw error
  }
}

/** The code of the error, or its class. */
export function nameFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
