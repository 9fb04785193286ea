import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { bindRoute } from '../http/bind.ts'
import { addCollaborator, changeCollaboratorRole, removeCollaborator } from './actions.ts'
import { listCollaborators } from './queries.ts'

export function registerCollaboratorRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listCollaborators', async ({ params }) => {
    const rows = await listCollaborators(deps.db, params)
    return rows.map((row) => ({ ...row, display_name: row.display_name ?? undefined }))
  })
  bindRoute(app, deps, 'addCollaborator', async ({ actor, params, body }) => {
    await addCollaborator(deps, actor, { appId: params.appId, email: body.email })
  })
  bindRoute(app, deps, 'updateCollaborator', async ({ actor, params, body }) => {
    await changeCollaboratorRole(deps, actor, { appId: params.appId, userId: params.collaboratorId, role: body.role })
  })
  bindRoute(app, deps, 'removeCollaborator', async ({ actor, params }) => {
    await removeCollaborator(deps, actor, { appId: params.appId, userId: params.collaboratorId })
  })
}
