import type { Invitation } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { bindRoute } from '../http/bind.ts'
import { invite, revokeInvitation } from './actions.ts'
import { acceptInvitation, declineInvitation, listReceivedInvitations } from './answer-actions.ts'
import { type InvitationRow, listInvitationsOfOrganization } from './queries.ts'

export function registerInvitationRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listInvitations', async ({ params }) => {
    const rows = await listInvitationsOfOrganization(deps.db, { ...params, now: deps.clock() })
    return { invitations: rows.map(toInvitation) }
  })
  bindRoute(app, deps, 'createInvitation', async ({ actor, params, body }) => {
    const { email, role, app_id } = body
    const created = await invite(deps, actor, { ...params, email, role, appId: app_id ?? undefined })
    return { ...toInvitation(created.invitation), url: created.url }
  })
  bindRoute(app, deps, 'revokeInvitation', async ({ actor, params }) => {
    await revokeInvitation(deps, actor, params)
  })
  bindRoute(app, deps, 'listReceivedInvitations', async ({ actor }) => {
    const rows = await listReceivedInvitations(deps, actor)
    return { invitations: rows.map(toInvitation) }
  })
  bindRoute(app, deps, 'acceptInvitation', async ({ actor, params }) => {
    await acceptInvitation(deps, actor, params)
  })
  bindRoute(app, deps, 'declineInvitation', async ({ actor, params }) => {
    await declineInvitation(deps, actor, params)
  })
}

export function toInvitation(row: InvitationRow): Invitation {
  return {
    id: row.id,
    organization_id: row.organization_id,
    organization_name: row.organization_name,
    app_id: row.app_id ?? undefined,
    app_name: row.app_name ?? undefined,
    email: row.email,
    role: row.role,
    invited_by: row.invited_by ?? undefined,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
  }
}
