import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingHttpHeaders } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import packageJson from '../../../../package.json' with { type: 'json' }
import type { TracedSpan, Tracing } from './tracing.ts'
import type { TracingConfig } from './tracing-settings.ts'

/** A collector that does not answer must not hold up the stop of the server for longer. */
const stopPatienceMs = 3000
/** The libraries complain of each batch that they cannot send. */
const complainEveryMs = 60_000

/** Spans by hand at our few seams: what patches modules when they are loaded does not get along with ES modules. */
export function createOpenTelemetry(config: TracingConfig, { log }: { log: Logger }): Tracing {
  reportProblems(log)
  const provider = createProvider(config)
  const tracer = provider.getTracer('godwit', packageJson.version)
  const propagator = new W3CTraceContextPropagator()
  const running = new AsyncLocalStorage<Span>()

  /** What goes on after its span has ended, such as a timer that a request has set, is not part of it. */
  const findRunning = () => {
    const span = running.getStore()
    return span?.isRecording() ? span : undefined
  }
  const toTraced = (span: Span): TracedSpan | undefined => {
    if (!span.isRecording()) return undefined
    return {
      traceId: span.spanContext().traceId,
      run: (work) => running.run(span, work),
      end: ({ failure, attributes = {} } = {}) => {
        span.setAttributes(attributes)
        if (failure !== undefined) span.setAttribute('error.type', failure).setStatus({ code: SpanStatusCode.ERROR })
        span.end()
      },
    }
  }
  const extract = (carrier: IncomingHttpHeaders): Context =>
    propagator.extract(ROOT_CONTEXT, carrier, defaultTextMapGetter)
  return {
    startRequest: ({ method, route, headers }) => {
      const attributes = { 'http.request.method': method, 'http.route': route }
      const options = { kind: SpanKind.SERVER, attributes }
      const parent = headers.traceparent === undefined ? ROOT_CONTEXT : extract(headers)
      return toTraced(tracer.startSpan(`${method} ${route}`, options, parent))
    },
    startJob: ({ queue, traceparent }) => {
      const attributes = { 'messaging.system': 'pg-boss', 'messaging.destination.name': queue }
      const options = { kind: SpanKind.CONSUMER, attributes }
      return toTraced(tracer.startSpan(`job ${queue}`, options, extract({ traceparent })))
    },
    startChild: ({ name, attributes = {}, durationMs, isCall = false }) => {
      const parent = findRunning()
      if (parent === undefined) return undefined
      const time = durationMs === undefined ? {} : { startTime: Date.now() - durationMs }
      const options = { kind: isCall ? SpanKind.CLIENT : SpanKind.INTERNAL, attributes, ...time }
      return toTraced(tracer.startSpan(name, options, trace.setSpan(ROOT_CONTEXT, parent)))
    },
    findTraceparent: () => {
      const span = findRunning()
      if (span === undefined) return undefined
      const carrier: Record<string, string> = {}
      propagator.inject(trace.setSpan(ROOT_CONTEXT, span), carrier, defaultTextMapSetter)
      return carrier.traceparent
    },
    stop: async () => {
      const shutDown = provider.shutdown().catch((error: unknown) => log.warn({ err: error }, 'cannot send traces'))
      await Promise.race([shutDown, sleep(stopPatienceMs, undefined, { ref: false })])
    },
  }
}

function createProvider({ protocol, serviceName, sampler, ratio }: TracingConfig): TracerProvider {
  const exporter = protocol === 'http/json' ? new JsonExporter() : new ProtobufExporter()
  const own = resourceFromAttributes({ 'service.version': packageJson.version })
  return new TracerProvider({
    sampler: createSampler(sampler, ratio),
    resource: defaultResource()
      .merge(own)
      .merge(detectResources({ detectors: [envDetector] }))
      .merge(resourceFromAttributes({ 'service.name': serviceName })),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  })
}

function createSampler(name: TracingConfig['sampler'], ratio: number): Sampler {
  const root = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(ratio),
  }
  const kind = name.replace('parentbased_', '') as keyof typeof root
  return kind === name ? root[kind]() : new ParentBasedSampler({ root: root[kind]() })
}

function reportProblems(log: Logger): void {
  let quietUntil = 0
  const report = (message: string) => {
    if (performance.now() < quietUntil) return
    quietUntil = performance.now() + complainEveryMs
    log.warn({ reason: message.slice(0, 500) }, 'traces are lost')
  }
  const ignore = () => undefined
  diag.setLogger({ error: report, warn: report, info: ignore, debug: ignore, verbose: ignore })
}
