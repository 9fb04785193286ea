import type { Db } from '../db/connection.ts'

export async function findUser(db: Db, input: { id: number }) {
  return await db.selectFrom('users').selectAll().where('id', '=', input.id).executeTakeFirst()
}

export async function findUserByEmail(db: Db, input: { email: string }) {
  return await db
    .selectFrom('users')
    .select(['id', 'email'])
    .where((eb) => eb(eb.fn<string>('lower', ['email']), '=', input.email.toLowerCase()))
    .executeTakeFirst()
}

/** Keeps the account until the commit. undefined when it is gone. */
export async function lockUserAgainstDeletion(db: Db, input: { id: number }) {
  return await db
    .selectFrom('users')
    .select(['id', 'email', 'email_verified_at'])
    .where('id', '=', input.id)
    .forKeyShare()
    .executeTakeFirst()
}

/** Nobody can make the account a member or an owner of anything until the commit. Whether it is there. */
export async function lockUser(db: Db, input: { id: number }): Promise<boolean> {
  const row = await db.selectFrom('users').select('id').where('id', '=', input.id).forUpdate().executeTakeFirst()
  return row !== undefined
}

/** A field that is undefined stays as it is. */
export async function updateUser(
  db: Db,
  input: { id: number; displayName: string | null | undefined; patchOverageLimit: number | null | undefined; at: Date },
) {
  return await db
    .updateTable('users')
    .set({
      updated_at: input.at,
      ...(input.displayName === undefined ? {} : { display_name: input.displayName }),
      ...(input.patchOverageLimit === undefined ? {} : { patch_overage_limit: input.patchOverageLimit }),
    })
    .where('id', '=', input.id)
    .returningAll()
    .executeTakeFirst()
}

export async function updateEmailVerified(db: Db, input: { id: number; at: Date }): Promise<void> {
  await db
    .updateTable('users')
    .set({ email_verified_at: input.at })
    .where('id', '=', input.id)
    .where('email_verified_at', 'is', null)
    .execute()
}

/** With its identities, sessions, keys, memberships and collaborations. */
export async function deleteUser(db: Db, input: { id: number }): Promise<void> {
  await db.deleteFrom('users').where('id', '=', input.id).execute()
}

/** The organizations that an account owns, without those that are being deleted; the personal one first. */
export async function listOwnedOrganizations(db: Db, input: { userId: number }) {
  return await db
    .selectFrom('organization_members')
    .innerJoin('organizations', 'organizations.id', 'organization_members.organization_id')
    .select(['organizations.id', 'organizations.name', 'organizations.organization_type'])
    .where('organization_members.user_id', '=', input.userId)
    .where('organization_members.role', '=', 'owner')
    .where('organizations.deletion_started_at', 'is', null)
    .orderBy('organizations.organization_type')
    .orderBy('organizations.id')
    .execute()
}

/** Returns undefined when an account with this e-mail exists, whatever its case. */
export async function insertUser(
  db: Db,
  input: {
    email: string
    displayName: string | null
    jwtIssuer: string
    passwordHash: string | null
    emailVerifiedAt: Date | null
  },
) {
  return await db
    .insertInto('users')
    .values({
      email: input.email,
      display_name: input.displayName,
      jwt_issuer: input.jwtIssuer,
      password_hash: input.passwordHash,
      email_verified_at: input.emailVerifiedAt,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .executeTakeFirst()
}

export async function hasUsers(db: Db): Promise<boolean> {
  return (await db.selectFrom('users').select('id').limit(1).executeTakeFirst()) !== undefined
}

/**
 * When nobody has shown yet that the e-mail of this account is theirs: marks it as shown now, and takes from it all that
 * was set up before (password, second factor, identities, sessions, keys). Whether that was so.
 */
export async function claimUnverifiedUser(db: Db, input: { id: number; at: Date }): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('users')
    .set({
      email_verified_at: input.at,
      password_hash: null,
      totp_secret: null,
      totp_enabled_at: null,
      totp_last_step: null,
    })
    .where('id', '=', input.id)
    .where('email_verified_at', 'is', null)
    .executeTakeFirst()
  if (numUpdatedRows === 0n) return false
  await db.deleteFrom('user_identities').where('user_id', '=', input.id).execute()
  await db.deleteFrom('sessions').where('user_id', '=', input.id).execute()
  await db.deleteFrom('command_line_codes').where('user_id', '=', input.id).execute()
  await db.deleteFrom('password_resets').where('user_id', '=', input.id).execute()
  await db.deleteFrom('api_keys').where('user_id', '=', input.id).execute()
  return true
}
