import type { AppCollaboratorRole, Role, ServiceAccountRole } from '@godwit/contract'
import type { Db } from '../db/connection.ts'
import type { Actor } from './actor.ts'

/** The roles that a caller has on a resource. */
export type Access = {
  role: Exclude<Role, 'none'> | null
  serviceAccountRole: ServiceAccountRole | null
  collaboratorRoles: AppCollaboratorRole[]
}

const nothing: Access = { role: null, serviceAccountRole: null, collaboratorRoles: [] }

/** An organization that is being deleted, and all that is below it, is no longer there for anybody. */
export async function findAppAccess(db: Db, input: { actor: Actor; appId: string }): Promise<Access> {
  const { actor, appId } = input
  if (actor.kind === 'newcomer') return nothing
  if (actor.kind === 'service_account') {
    const row = await db
      .selectFrom('apps')
      .innerJoin('organizations', 'organizations.id', 'apps.organization_id')
      .select('apps.id')
      .where('apps.id', '=', appId)
      .where('apps.organization_id', '=', actor.organizationId)
      .where('organizations.deletion_started_at', 'is', null)
      .executeTakeFirst()
    return row === undefined ? nothing : { ...nothing, serviceAccountRole: actor.role }
  }
  const row = await db
    .selectFrom('apps')
    .innerJoin('organizations', 'organizations.id', 'apps.organization_id')
    .leftJoin('organization_members as member', (join) =>
      join.onRef('member.organization_id', '=', 'apps.organization_id').on('member.user_id', '=', actor.userId),
    )
    .leftJoin('app_collaborators as collaborator', (join) =>
      join.onRef('collaborator.app_id', '=', 'apps.id').on('collaborator.user_id', '=', actor.userId),
    )
    .select(['member.role', 'collaborator.role as collaborator_role'])
    .where('apps.id', '=', appId)
    .where('organizations.deletion_started_at', 'is', null)
    .executeTakeFirst()
  if (row === undefined) return nothing
  return {
    ...nothing,
    role: row.role,
    collaboratorRoles: row.collaborator_role === null ? [] : [row.collaborator_role],
  }
}

export async function findOrganizationAccess(db: Db, input: { actor: Actor; organizationId: number }): Promise<Access> {
  const { actor, organizationId } = input
  if (actor.kind === 'newcomer') return nothing
  if (actor.kind === 'service_account') {
    if (actor.organizationId !== organizationId) return nothing
    const row = await db
      .selectFrom('organizations')
      .select('id')
      .where('id', '=', organizationId)
      .where('deletion_started_at', 'is', null)
      .executeTakeFirst()
    return row === undefined ? nothing : { ...nothing, serviceAccountRole: actor.role }
  }
  // One after the other: inside a transaction both go over one connection.
  const member = await db
    .selectFrom('organization_members')
    .innerJoin('organizations', 'organizations.id', 'organization_members.organization_id')
    .select('role')
    .where('organization_id', '=', organizationId)
    .where('user_id', '=', actor.userId)
    .where('organizations.deletion_started_at', 'is', null)
    .executeTakeFirst()
  const collaborations = await db
    .selectFrom('app_collaborators')
    .innerJoin('apps', 'apps.id', 'app_collaborators.app_id')
    .innerJoin('organizations', 'organizations.id', 'apps.organization_id')
    .select('role')
    .distinct()
    .where('apps.organization_id', '=', organizationId)
    .where('app_collaborators.user_id', '=', actor.userId)
    .where('organizations.deletion_started_at', 'is', null)
    .execute()
  return { ...nothing, role: member?.role ?? null, collaboratorRoles: collaborations.map(({ role }) => role) }
}
