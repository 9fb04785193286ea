import { defineRoute } from '../route.ts'
import { GetOrganizationAppsResponse } from '../schemas/apps.ts'
import { GetOrganizationsResponse, GetOrganizationUsersResponse } from '../schemas/people.ts'

const tag = 'Organizations'

export const organizationRoutes = {
  listOrganizations: defineRoute({
    method: 'GET',
    path: '/api/v1/organizations',
    tag,
    summary: 'Organizations of the caller',
    description: 'Also those in which the caller is only a collaborator on an app: their role is `none`.',
    access: { by: 'bearer', permission: 'organization.read', on: 'caller' },
    success: { status: 200, body: GetOrganizationsResponse },
  }),
  listOrganizationApps: defineRoute({
    method: 'GET',
    path: '/api/v1/organizations/{organizationId}/apps',
    tag,
    summary: 'Apps of an organization that the caller may see',
    access: { by: 'bearer', permission: 'app.read', on: 'organization' },
    success: { status: 200, body: GetOrganizationAppsResponse },
  }),
  listOrganizationUsers: defineRoute({
    method: 'GET',
    path: '/api/v1/organizations/{organizationId}/users',
    tag,
    summary: 'Members of an organization',
    access: { by: 'bearer', permission: 'members.read', on: 'organization' },
    success: { status: 200, body: GetOrganizationUsersResponse },
  }),
}
