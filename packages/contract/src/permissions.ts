import type { ApiKeyPermission, AppCollaboratorRole, Role, ServiceAccountRole } from './schemas/enums.ts'

export const permissions = [
  'account.manage',
  'organization.read',
  'members.read',
  'organization.update',
  'organization.delete',
  'organization.transfer_ownership',
  'members.manage',
  'service_accounts.manage',
  'audit.read',
  'app.create',
  'app.read',
  'metrics.read',
  'app.update',
  'app.delete',
  'app.transfer',
  'collaborators.manage',
  'channel.create',
  'channel.delete',
  'release.write',
  'release.delete',
  'patch.write',
  'diagnostics.run',
] as const
export type Permission = (typeof permissions)[number]

const readApp: Permission[] = ['app.read', 'metrics.read']
const publish: Permission[] = ['channel.create', 'release.write', 'patch.write']
const manageApp: Permission[] = ['app.update', 'collaborators.manage', 'channel.delete', 'release.delete']
const readOrganization: Permission[] = ['organization.read', 'members.read']

const viewer = [...readOrganization, ...readApp]
const developer = [...viewer, ...publish]
const appManager = [...developer, ...manageApp, 'app.create'] satisfies Permission[]
const admin = [
  ...appManager,
  'organization.update',
  'members.manage',
  'service_accounts.manage',
  'audit.read',
  'app.delete',
  'app.transfer',
] satisfies Permission[]
const owner = [...admin, 'organization.delete', 'organization.transfer_ownership'] satisfies Permission[]

/** What a role in an organization allows, on the organization and on all of its apps. */
export const organizationRolePermissions: Record<Role, ReadonlySet<Permission>> = {
  owner: new Set(owner),
  admin: new Set(admin),
  appManager: new Set(appManager),
  developer: new Set(developer),
  viewer: new Set(viewer),
  none: new Set(),
}

/** What a service account may do in its organization, and all it may do: it has no account of its own to manage. */
export const serviceAccountRolePermissions: Record<ServiceAccountRole, ReadonlySet<Permission>> = {
  admin: new Set([...admin, 'diagnostics.run']),
  appManager: new Set([...appManager, 'diagnostics.run']),
  developer: new Set([...developer, 'diagnostics.run']),
  viewer: new Set([...viewer, 'diagnostics.run']),
  auditor: new Set(['audit.read']),
}

/** What a collaborator may do on the one app. */
export const collaboratorRolePermissions: Record<AppCollaboratorRole, ReadonlySet<Permission>> = {
  admin: new Set([...readApp, ...publish, ...manageApp, 'app.delete']),
  developer: new Set([...readApp, ...publish]),
}

/** What every signed-in person may do, whatever its roles. */
export const personalPermissions: ReadonlySet<Permission> = new Set(['account.manage', 'diagnostics.run'])

/** What an API key leaves of its owner's rights. */
export const apiKeyPermissions: Record<ApiKeyPermission, ReadonlySet<Permission>> = {
  full: new Set(permissions),
  release_and_patch: new Set([...readOrganization, ...readApp, ...publish, 'diagnostics.run']),
}
