import {
  collaboratorRolePermissions,
  organizationRolePermissions,
  type Permission,
  personalPermissions,
  serviceAccountRolePermissions,
} from '@godwit/contract'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { type Access, findAppAccess, findOrganizationAccess } from './access-queries.ts'
import type { Actor } from './actor.ts'

/** Union of what the roles allow, cut down to what the credential allows. */
function listGranted(actor: Actor, access: Access): Set<Permission> {
  const granted = new Set(personalPermissions)
  if (access.role !== null) for (const permission of organizationRolePermissions[access.role]) granted.add(permission)
  if (access.serviceAccountRole !== null) {
    for (const permission of serviceAccountRolePermissions[access.serviceAccountRole]) granted.add(permission)
  }
  for (const role of access.collaboratorRoles) {
    for (const permission of collaboratorRolePermissions[role]) granted.add(permission)
  }
  return granted.intersection(actor.allows)
}

/** A resource that the caller has no role on answers as a missing one; one that it sees but may not change is a 403. */
function requirePermission(actor: Actor, access: Access, permission: Permission): void {
  const { role, serviceAccountRole, collaboratorRoles } = access
  if (role === null && serviceAccountRole === null && collaboratorRoles.length === 0) throw new AppError('not_found')
  if (!listGranted(actor, access).has(permission)) throw new AppError('forbidden')
}

export async function authorizeOnApp(deps: Deps, actor: Actor, permission: Permission, appId: string): Promise<void> {
  requirePermission(actor, await findAppAccess(deps.db, { actor, appId }), permission)
}

export async function authorizeOnOrganization(
  deps: Deps,
  actor: Actor,
  permission: Permission,
  organizationId: number,
): Promise<void> {
  requirePermission(actor, await findOrganizationAccess(deps.db, { actor, organizationId }), permission)
}

/** For what belongs to the caller itself, and for lists, which show only what the caller may see. */
export function authorizeOnCaller(actor: Actor, permission: Permission): void {
  if (!actor.allows.has(permission)) throw new AppError('forbidden')
}
