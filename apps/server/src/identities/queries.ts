import { sql } from 'kysely'
import type { Db } from '../db/connection.ts'

export async function findUserByIdentity(db: Db, input: { issuer: string; subject: string }) {
  return await db
    .selectFrom('user_identities')
    .innerJoin('users', 'users.id', 'user_identities.user_id')
    .select(['users.id', 'users.email', 'users.display_name'])
    .where('issuer', '=', input.issuer)
    .where('subject', '=', input.subject)
    .executeTakeFirst()
}

/**
 * Lets one transaction at a time decide which account an identity has, also while there is no row to lock. Two identities
 * with one hash wait for each other for nothing, which does no harm.
 */
export async function lockIdentity(db: Db, input: { issuer: string; subject: string }): Promise<void> {
  const name = JSON.stringify(['identity', input.issuer, input.subject])
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`.execute(db)
}

/** Until the transaction ends nobody else claims, changes or deletes the account. */
export async function lockUserByEmail(db: Db, input: { email: string }) {
  return await db
    .selectFrom('users')
    .select(['id', 'email', 'display_name', 'email_verified_at'])
    .where((eb) => eb(eb.fn<string>('lower', ['email']), '=', input.email.toLowerCase()))
    .forUpdate()
    .executeTakeFirst()
}

export async function insertIdentity(
  db: Db,
  input: { userId: number; issuer: string; subject: string; email: string },
): Promise<void> {
  await db
    .insertInto('user_identities')
    .values({ user_id: input.userId, issuer: input.issuer, subject: input.subject, email: input.email })
    .execute()
}

const personalOrganizations = (db: Db, userId: number) =>
  db
    .selectFrom('organization_members')
    .innerJoin('organizations', 'organizations.id', 'organization_members.organization_id')
    .select('organizations.id')
    .where('organization_members.user_id', '=', userId)
    .where('organization_members.role', '=', 'owner')
    .where('organizations.organization_type', '=', 'personal')

/** With their keys, trust rules and sessions. */
export async function deletePersonalServiceAccounts(db: Db, input: { userId: number }) {
  return await db
    .deleteFrom('service_accounts')
    .where('organization_id', 'in', personalOrganizations(db, input.userId))
    .returning(['id', 'organization_id', 'name', 'role'])
    .execute()
}

export async function deletePersonalCollaborators(db: Db, input: { userId: number }) {
  return await db
    .deleteFrom('app_collaborators')
    .where('app_id', 'in', (eb) =>
      eb
        .selectFrom('apps')
        .select('apps.id')
        .where('apps.organization_id', 'in', personalOrganizations(db, input.userId)),
    )
    .returning(['app_id', 'user_id', 'role'])
    .execute()
}

export async function updatePersonalInvitationsRevoked(db: Db, input: { userId: number }) {
  return await db
    .updateTable('invitations')
    .set({ status: 'revoked' })
    .where('organization_id', 'in', personalOrganizations(db, input.userId))
    .where('status', '=', 'pending')
    .returning(['id', 'organization_id', 'email', 'role'])
    .execute()
}
