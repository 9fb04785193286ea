import type { FastifyInstance } from 'fastify'
import { listAppMetadata } from '../apps/queries.ts'
import { toAppMetadata } from '../apps/routes.ts'
import type { Deps } from '../deps.ts'
import { bindRoute } from '../http/bind.ts'
import { listMembers, listOrganizationsOfUser } from './queries.ts'

export function registerOrganizationRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listOrganizations', async ({ actor }) => {
    const rows = await listOrganizationsOfUser(deps.db, { userId: actor.userId })
    const organizations = rows.map(({ role, ...organization }) => ({
      organization: {
        id: organization.id,
        name: organization.name,
        organization_type: organization.organization_type,
        created_at: organization.created_at.toISOString(),
        updated_at: organization.updated_at.toISOString(),
      },
      role,
    }))
    return { organizations }
  })
  bindRoute(app, deps, 'listOrganizationApps', async ({ actor, params }) => {
    const rows = await listAppMetadata(deps.db, { userId: actor.userId, organizationId: params.organizationId })
    return { apps: rows.map(toAppMetadata) }
  })
  bindRoute(app, deps, 'listOrganizationUsers', async ({ params }) => {
    const members = await listMembers(deps.db, { organizationId: params.organizationId })
    const users = members.map(({ id, email, display_name, role }) => ({
      user: { id, email, display_name: display_name ?? undefined },
      role,
    }))
    return { users }
  })
}
