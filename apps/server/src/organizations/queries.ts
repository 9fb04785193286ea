import type { OrganizationType, Role, ServiceAccountRole } from '@godwit/contract'
import { type Expression, type SqlBool, sql } from 'kysely'
import type { Db } from '../db/connection.ts'
import type { Actor } from '../http/actor.ts'

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

/** undefined when there is none, or when it is being deleted. */
export async function findOrganization(db: Db, input: { organizationId: number }) {
  return await db
    .selectFrom('organizations')
    .selectAll()
    .where('id', '=', input.organizationId)
    .where('deletion_started_at', 'is', null)
    .executeTakeFirst()
}

/** Whoever changes members, ownership or invitations holds this lock. undefined as for `findOrganization`. */
export async function lockOrganization(db: Db, input: { organizationId: number }) {
  return await db
    .selectFrom('organizations')
    .selectAll()
    .where('id', '=', input.organizationId)
    .where('deletion_started_at', 'is', null)
    .forUpdate()
    .executeTakeFirst()
}

export async function updateOrganizationName(
  db: Db,
  input: { organizationId: number; name: string; at: Date },
): Promise<void> {
  await db
    .updateTable('organizations')
    .set({ name: input.name, updated_at: input.at })
    .where('id', '=', input.organizationId)
    .execute()
}

export async function updateDeletionStarted(db: Db, input: { organizationId: number; at: Date }): Promise<void> {
  await db
    .updateTable('organizations')
    .set({ deletion_started_at: input.at })
    .where('id', '=', input.organizationId)
    .execute()
}

export async function listOrganizationIdsInDeletion(db: Db): Promise<number[]> {
  const rows = await db
    .selectFrom('organizations')
    .select('id')
    .where('deletion_started_at', 'is not', null)
    .orderBy('id')
    .execute()
  return rows.map(({ id }) => id)
}

export async function isInDeletion(db: Db, input: { organizationId: number }): Promise<boolean> {
  const row = await db
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', input.organizationId)
    .where('deletion_started_at', 'is not', null)
    .executeTakeFirst()
  return row !== undefined
}

/** Fails while an app is left. */
export async function deleteOrganizationInDeletion(db: Db, input: { organizationId: number }): Promise<void> {
  await db
    .deleteFrom('organizations')
    .where('id', '=', input.organizationId)
    .where('deletion_started_at', 'is not', null)
    .execute()
}

export async function findMember(db: Db, input: { organizationId: number; userId: number }) {
  return await db
    .selectFrom('organization_members')
    .innerJoin('users', 'users.id', 'organization_members.user_id')
    .select(['user_id', 'role', 'email'])
    .where('organization_id', '=', input.organizationId)
    .where('user_id', '=', input.userId)
    .executeTakeFirst()
}

export async function findOwner(db: Db, input: { organizationId: number }) {
  return await db
    .selectFrom('organization_members')
    .select('user_id')
    .where('organization_id', '=', input.organizationId)
    .where('role', '=', 'owner')
    .executeTakeFirst()
}

export async function updateMemberRole(
  db: Db,
  input: { organizationId: number; userId: number; role: Exclude<Role, 'none'> },
): Promise<void> {
  await db
    .updateTable('organization_members')
    .set({ role: input.role })
    .where('organization_id', '=', input.organizationId)
    .where('user_id', '=', input.userId)
    .execute()
}

export async function deleteMember(db: Db, input: { organizationId: number; userId: number }): Promise<void> {
  await db
    .deleteFrom('organization_members')
    .where('organization_id', '=', input.organizationId)
    .where('user_id', '=', input.userId)
    .execute()
}

/** The role that a service account has now, kept as it is until the commit. */
export async function lockServiceAccountRole(db: Db, input: { serviceAccountId: number }) {
  return await db
    .selectFrom('service_accounts')
    .select('role')
    .where('id', '=', input.serviceAccountId)
    .forShare()
    .executeTakeFirst()
}

export async function listAllowedDomains(db: Db, input: { organizationId: number }): Promise<string[]> {
  const rows = await db
    .selectFrom('organization_allowed_domains')
    .select('domain')
    .where('organization_id', '=', input.organizationId)
    .orderBy('domain')
    .execute()
  return rows.map(({ domain }) => domain)
}

/** Whether it was not there. */
export async function insertAllowedDomain(db: Db, input: { organizationId: number; domain: string }): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('organization_allowed_domains')
    .values({ organization_id: input.organizationId, domain: input.domain })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return (numInsertedOrUpdatedRows ?? 0n) > 0n
}

/** Whether it was there. */
export async function deleteAllowedDomain(db: Db, input: { organizationId: number; domain: string }): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('organization_allowed_domains')
    .where('organization_id', '=', input.organizationId)
    .where('domain', '=', input.domain)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** Per app of the organization the patch installs that were received in a time, oldest app first. */
export async function listPatchInstallCounts(db: Db, input: { organizationId: number; from: Date; to: Date }) {
  return await db
    .selectFrom('apps')
    .leftJoin('device_events as event', (join) =>
      join
        .onRef('event.app_id', '=', 'apps.id')
        // In the words of the index, which has the installs only.
        .on('event.type', '=', sql.lit('__patch_install__'))
        .on('event.received_at', '>=', input.from)
        .on('event.received_at', '<', input.to),
    )
    .select(({ fn }) => [
      'apps.id',
      'apps.display_name as name',
      fn.count<number>('event.app_id').as('patch_install_count'),
    ])
    .where('apps.organization_id', '=', input.organizationId)
    .groupBy('apps.id')
    .orderBy('apps.created_at')
    .orderBy('apps.id')
    .execute()
}

/**
 * Organizations that the caller is a member of, and with role `none` those in which it works on an app. A service account
 * sees its own, with its role.
 */
export async function listOrganizationsOfCaller(db: Db, input: { actor: Actor }) {
  const { actor } = input
  if (actor.kind === 'newcomer') return []
  const visible = db.selectFrom('organizations').selectAll('organizations').where('deletion_started_at', 'is', null)
  if (actor.kind === 'service_account') {
    const rows = await visible.where('organizations.id', '=', actor.organizationId).execute()
    // The auditor may not list organizations, so that every role left is one of Role.
    return rows.map((row) => ({ ...row, role: actor.role as Exclude<ServiceAccountRole, 'auditor'> }))
  }
  return await visible
    .leftJoin('organization_members as member', (join) =>
      join.onRef('member.organization_id', '=', 'organizations.id').on('member.user_id', '=', actor.userId),
    )
    .select(sql<Role>`coalesce(member.role, 'none')`.as('role'))
    .where((eb) =>
      eb.or([
        eb('member.role', 'is not', null),
        eb.exists(
          eb
            .selectFrom('app_collaborators')
            .innerJoin('apps', 'apps.id', 'app_collaborators.app_id')
            .select('apps.id')
            .where('app_collaborators.user_id', '=', actor.userId)
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
