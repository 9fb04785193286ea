import { Readable } from 'node:stream'
import { createOpenApiDocument } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { bindRoute } from '../http/bind.ts'
import { requireMetricsToken } from './metrics-token.ts'

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
    requireMetricsToken(deps.config, request.headers)
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
