import { timingSafeEqual } from 'node:crypto'
import { Readable } from 'node:stream'
import { createOpenApiDocument } from '@godwit/contract'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { sql } from 'kysely'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { bindRoute } from '../http/bind.ts'
import { hashToken } from '../random-tokens.ts'

const databaseProbeTimeoutMs = 2000

export function registerServiceRoutes(app: FastifyInstance, deps: Deps): void {
  const openApi = createOpenApiDocument()
  const { publicUrl } = deps.config
  bindRoute(app, deps, 'getHealth', async () => ({ status: 'ok' as const }))
  bindRoute(app, deps, 'getReadiness', async () => {
    if (!deps.isServing() || !(await canReachDatabase(deps)))
      throw new AppError('unavailable', undefined, { retryAfterSeconds: 1 })
    return { status: 'ok' as const }
  })
  bindRoute(app, deps, 'getPrometheusMetrics', async ({ request, reply }) => {
    requireMetricsToken(deps.config, request)
    reply.type(deps.registry.contentType)
    return Readable.from([await deps.registry.metrics()])
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

async function canReachDatabase(deps: Deps): Promise<boolean> {
  const tooLate = new Promise<boolean>((resolve) => {
    setTimeout(resolve, databaseProbeTimeoutMs, false).unref()
  })
  const answer = sql`select 1`.execute(deps.db).then(
    () => true,
    () => false,
  )
  return await Promise.race([answer, tooLate])
}
