import type { Organization } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import type { Selectable } from 'kysely'
import { transferApp } from '../apps/actions.ts'
import { listAppMetadata } from '../apps/queries.ts'
import { toAppMetadata } from '../apps/routes.ts'
import type { Database } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { bindRoute } from '../http/bind.ts'
import { toInvitation } from '../invitations/routes.ts'
import { getOrganizationPlan } from '../plans/actions.ts'
import { describePlan } from '../plans/rules.ts'
import {
  createTeamOrganization,
  deleteOrganization,
  getOrganization,
  getUsage,
  renameOrganization,
  transferOwnership,
} from './actions.ts'
import { addMember, changeMemberRole, removeMember } from './member-actions.ts'
import { listMembers, listOrganizationsOfCaller } from './queries.ts'

export function registerOrganizationRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listOrganizations', async ({ actor }) => {
    const rows = await listOrganizationsOfCaller(deps.db, { actor })
    return { organizations: rows.map((row) => ({ organization: toOrganization(row), role: row.role })) }
  })
  bindRoute(app, deps, 'createOrganization', async ({ actor, body }) =>
    toOrganization(await createTeamOrganization(deps, actor, body)),
  )
  bindRoute(app, deps, 'getOrganization', async ({ params }) => toOrganization(await getOrganization(deps, params)))
  bindRoute(app, deps, 'updateOrganization', async ({ actor, params, body }) => {
    await renameOrganization(deps, actor, { ...params, name: body.name })
  })
  bindRoute(app, deps, 'deleteOrganization', async ({ actor, params }) => {
    await deleteOrganization(deps, actor, params)
  })
  bindRoute(app, deps, 'transferOwnership', async ({ actor, params, body }) => {
    await transferOwnership(deps, actor, { ...params, userId: body.user_id })
  })
  bindRoute(app, deps, 'getOrganizationPlan', async ({ params }) =>
    describePlan(await getOrganizationPlan(deps, deps.db, params)),
  )
  bindRoute(app, deps, 'getOrganizationUsage', async ({ params }) => getUsage(deps, params))
  registerMemberRoutes(app, deps)
  bindRoute(app, deps, 'listOrganizationApps', async ({ actor, params }) => {
    const rows = await listAppMetadata(deps.db, { actor, organizationId: params.organizationId })
    return { apps: rows.map((row) => toAppMetadata(deps, row)) }
  })
  bindRoute(app, deps, 'transferApp', async ({ actor, params, body }) => {
    await transferApp(deps, actor, { ...params, appId: body.app_id })
  })
}

function registerMemberRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listOrganizationUsers', async ({ params }) => {
    const members = await listMembers(deps.db, { organizationId: params.organizationId })
    const users = members.map(({ id, email, display_name, role }) => ({
      user: { id, email, display_name: display_name ?? undefined },
      role,
    }))
    return { users }
  })
  bindRoute(app, deps, 'addOrganizationUser', async ({ actor, params, body }) => {
    const outcome = await addMember(deps, actor, { ...params, ...body })
    if (outcome.status === 'added') return { status: outcome.status }
    return { status: outcome.status, invitation: { ...toInvitation(outcome.invitation), url: outcome.url } }
  })
  bindRoute(app, deps, 'updateOrganizationUser', async ({ actor, params, body }) => {
    await changeMemberRole(deps, actor, { ...params, role: body.role })
  })
  bindRoute(app, deps, 'removeOrganizationUser', async ({ actor, params }) => {
    await removeMember(deps, actor, params)
  })
}

function toOrganization(row: Selectable<Database['organizations']>): Organization {
  return {
    id: row.id,
    name: row.name,
    organization_type: row.organization_type,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}
