import type { OrganizationType, Role } from '@godwit/contract'
import { type Expression, type SqlBool, sql } from 'kysely'
import type { Db } from '../db/connection.ts'

export async function insertOrganization(db: Db, input: { name: string; organizationType: OrganizationType }) {
  return await db
    .insertInto('organizations')
    .values({ name: input.name, organization_type: input.organizationType })
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function insertMember(
  db: Db,
  input: { organizationId: number; userId: number; role: Exclude<Role, 'none'> },
): Promise<void> {
  await db
    .insertInto('organization_members')
    .values({ organization_id: input.organizationId, user_id: input.userId, role: input.role })
    .execute()
}

/** Organizations that the user is a member of, and with role `none` those in which it works on an app. */
export async function listOrganizationsOfUser(db: Db, input: { userId: number | undefined }) {
  const { userId } = input
  if (userId === undefined) return []
  return await db
    .selectFrom('organizations')
    .leftJoin('organization_members as member', (join) =>
      join.onRef('member.organization_id', '=', 'organizations.id').on('member.user_id', '=', userId),
    )
    .selectAll('organizations')
    .select(sql<Role>`coalesce(member.role, 'none')`.as('role'))
    .where((eb) =>
      eb.or([
        eb('member.role', 'is not', null),
        eb.exists(
          eb
            .selectFrom('app_collaborators')
            .innerJoin('apps', 'apps.id', 'app_collaborators.app_id')
            .select('apps.id')
            .where('app_collaborators.user_id', '=', userId)
            .whereRef('apps.organization_id', '=', 'organizations.id') as Expression<SqlBool>,
        ),
      ]),
    )
    .orderBy('organizations.id')
    .execute()
}

export async function listMembers(db: Db, input: { organizationId: number }) {
  return await db
    .selectFrom('organization_members')
    .innerJoin('users', 'users.id', 'organization_members.user_id')
    .select(['users.id', 'users.email', 'users.display_name', 'organization_members.role'])
    .where('organization_members.organization_id', '=', input.organizationId)
    .orderBy('users.id')
    .execute()
}
