import { timingSafeEqual } from 'node:crypto'
import { Readable } from 'node:stream'
import { createOpenApiDocument } from '@godwit/contract'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { bindRoute } from '../http/bind.ts'
import { hashToken } from '../random-tokens.ts'

export function registerServiceRoutes(app: FastifyInstance, deps: Deps): void {
  const openApi = createOpenApiDocument()
  const { publicUrl } = deps.config
  bindRoute(app, deps, 'getHealth', async () => ({ status: 'ok' as const }))
  bindRoute(app, deps, 'getReadiness', async () => {
    // Not while the database is away: a load balancer would take every instance out, and devices would get no answers.
    if (!deps.isServing()) throw new AppError('unavailable', 'The server stops.', { retryAfterSeconds: 1 })
    return { status: 'ok' as const }
  })
  bindRoute(app, deps, 'getPrometheusMetrics', async ({ request, reply }) => {
    requireMetricsToken(deps.config, request)
    reply.type(deps.registry.contentType)
    return Readable.from([await deps.collectFigures()])
  })
  bindRoute(app, deps, 'getOpenApi', async () => ({ ...openApi }))
  bindRoute(app, deps, 'getApiCatalog', async () => ({
    linkset: [
      {
        anchor: `${publicUrl}/api/v1`,
        'service-desc': [{ href: `${publicUrl}/openapi.json`, type: 'application/json' }],
        status: [{ href: `${publicUrl}/readyz` }],
      },
    ],
  }))
}

/** By hash, so that the time which the comparison takes says nothing, not even of the length. */
function requireMetricsToken({ metricsToken }: Deps['config'], { headers }: FastifyRequest): void {
  if (metricsToken === undefined) return
  const isRight = timingSafeEqual(hashToken(headers.authorization ?? ''), hashToken(`Bearer ${metricsToken}`))
  if (!isRight) throw new AppError('unauthenticated')
}
