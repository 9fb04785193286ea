import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Deps } from '../deps.ts'
import type { TracedSpan } from '../telemetry/tracing.ts'
import { templateOf } from './log-requests.ts'
import { onRequestEnd } from './on-request-end.ts'

/** A span for each request, and its trace in every line of the request's log. */
export function traceRequests(app: FastifyInstance, { tracing }: Pick<Deps, 'tracing'>): void {
  if (tracing === undefined) return
  const spans = new WeakMap<FastifyRequest, TracedSpan>()
  app.addHook('onRequest', (request, reply, done) => {
    const { method, headers } = request
    const span = tracing.startRequest({ method, route: templateOf(request), headers })
    if (span === undefined) return done()
    spans.set(request, span)
    request.log = request.log.child({ traceId: span.traceId })
    reply.log = request.log
    span.run(done)
  })
  // The bytes of a body come as events of the connection, which know nothing of the span.
  app.addHook('preValidation', (request, _reply, done) => {
    const span = spans.get(request)
    if (span === undefined) done()
    else span.run(done)
  })
  onRequestEnd(app, (request, _reply, { status }) => endRequestSpan(spans.get(request), status))
}

/** A refusal is the caller's fault, and no failure of ours. */
export function endRequestSpan(span: TracedSpan | undefined, status: number): void {
  span?.end({
    failure: status >= 500 ? String(status) : undefined,
    attributes: { 'http.response.status_code': status },
  })
}
