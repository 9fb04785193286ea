import type { Db } from '../db/connection.ts'

export async function updatePasswordHash(
  db: Db,
  input: { userId: number; passwordHash: string; at: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('users')
    .set({ password_hash: input.passwordHash, updated_at: input.at })
    .where('id', '=', input.userId)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Links that were sent before, and codes on their way to a client: they were asked for with the password of before. */
export async function deleteCredentialsUnderway(db: Db, input: { userId: number }): Promise<void> {
  await db.deleteFrom('password_resets').where('user_id', '=', input.userId).where('used_at', 'is', null).execute()
  await db.deleteFrom('command_line_codes').where('user_id', '=', input.userId).where('used_at', 'is', null).execute()
}

export async function insertPasswordReset(
  db: Db,
  input: { hash: Buffer; userId: number; createdAt: Date; expiresAt: Date },
): Promise<void> {
  await db
    .insertInto('password_resets')
    .values({ hash: input.hash, user_id: input.userId, created_at: input.createdAt, expires_at: input.expiresAt })
    .execute()
}

export async function findOpenPasswordReset(db: Db, input: { hash: Buffer; now: Date }) {
  return await db
    .selectFrom('password_resets')
    .innerJoin('users', 'users.id', 'password_resets.user_id')
    .select(['users.id as user_id', 'users.email'])
    .where('password_resets.hash', '=', input.hash)
    .where('password_resets.used_at', 'is', null)
    .where('password_resets.expires_at', '>', input.now)
    .executeTakeFirst()
}

/** True for one caller only, however many come at once. */
export async function updateResetAsUsed(db: Db, input: { hash: Buffer; at: Date }): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('password_resets')
    .set({ used_at: input.at })
    .where('hash', '=', input.hash)
    .where('used_at', 'is', null)
    .where('expires_at', '>', input.at)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function findAccountByEmail(db: Db, input: { email: string }) {
  return await db
    .selectFrom('users')
    .select(['id', 'password_hash', 'totp_enabled_at'])
    .where((eb) => eb(eb.fn<string>('lower', ['email']), '=', input.email.toLowerCase()))
    .executeTakeFirst()
}

/**
 * The password hash, held against a change of password until the transaction ends. Not for update: rows that refer to the
 * account, such as the session of a code that is exchanged meanwhile, need not wait.
 */
export async function lockPasswordHash(db: Db, input: { userId: number }): Promise<string | null | undefined> {
  const row = await db
    .selectFrom('users')
    .select('password_hash')
    .where('id', '=', input.userId)
    .forNoKeyUpdate()
    .executeTakeFirst()
  return row?.password_hash
}
