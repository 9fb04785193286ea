import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { bindRoute } from '../http/bind.ts'
import { readEvents } from './read-events.ts'

export function registerAuditRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listAuditLogs', async ({ params, query }) =>
    readEvents(deps, { organizationId: params.organizationId, query }),
  )
}
