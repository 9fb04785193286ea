import type { AppCollaboratorRole, Role } from '@godwit/contract'
import type { Db } from '../db/connection.ts'

/** The roles that a user has on a resource. */
export type Access = { role: Exclude<Role, 'none'> | null; collaboratorRoles: AppCollaboratorRole[] }

const nothing: Access = { role: null, collaboratorRoles: [] }

export async function findAppAccess(db: Db, input: { userId: number | undefined; appId: string }): Promise<Access> {
  const { userId, appId } = input
  if (userId === undefined) return nothing
  const row = await db
    .selectFrom('apps')
    .leftJoin('organization_members as member', (join) =>
      join.onRef('member.organization_id', '=', 'apps.organization_id').on('member.user_id', '=', userId),
    )
    .leftJoin('app_collaborators as collaborator', (join) =>
      join.onRef('collaborator.app_id', '=', 'apps.id').on('collaborator.user_id', '=', userId),
    )
    .select(['member.role', 'collaborator.role as collaborator_role'])
    .where('apps.id', '=', appId)
    .executeTakeFirst()
  if (row === undefined) return nothing
  return { role: row.role, collaboratorRoles: row.collaborator_role === null ? [] : [row.collaborator_role] }
}

export async function findOrganizationAccess(
  db: Db,
  input: { userId: number | undefined; organizationId: number },
): Promise<Access> {
  const { userId, organizationId } = input
  if (userId === undefined) return nothing
  const [member, collaborations] = await Promise.all([
    db
      .selectFrom('organization_members')
      .select('role')
      .where('organization_id', '=', organizationId)
      .where('user_id', '=', userId)
      .executeTakeFirst(),
    db
      .selectFrom('app_collaborators')
      .innerJoin('apps', 'apps.id', 'app_collaborators.app_id')
      .select('role')
      .distinct()
      .where('apps.organization_id', '=', organizationId)
      .where('app_collaborators.user_id', '=', userId)
      .execute(),
  ])
  return { role: member?.role ?? null, collaboratorRoles: collaborations.map(({ role }) => role) }
}
