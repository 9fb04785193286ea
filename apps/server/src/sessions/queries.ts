import type { Db } from '../db/connection.ts'

export type NewSession = {
  id: string
  userId: number
  client: string
  issuer: string
  isMfa: boolean | null
  cookieHash: Buffer | null
  userAgent: string | null
  address: string | null
  createdAt: Date
  expiresAt: Date
}

export async function insertSession(db: Db, input: NewSession): Promise<void> {
  await db
    .insertInto('sessions')
    .values({
      id: input.id,
      user_id: input.userId,
      client: input.client,
      issuer: input.issuer,
      is_mfa: input.isMfa,
      cookie_hash: input.cookieHash,
      user_agent: input.userAgent,
      address: input.address,
      created_at: input.createdAt,
      expires_at: input.expiresAt,
    })
    .execute()
}

const withUser = (db: Db) =>
  db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .selectAll('sessions')
    .select(['users.email', 'users.display_name'])

/** A session that has neither ended nor been revoked. */
export async function findLiveSession(db: Db, input: { id: string; now: Date }) {
  return await withUser(db)
    .where('sessions.id', '=', input.id)
    .where('sessions.revoked_at', 'is', null)
    .where('sessions.expires_at', '>', input.now)
    .executeTakeFirst()
}

export async function findLiveSessionByCookie(db: Db, input: { cookieHash: Buffer; now: Date }) {
  return await withUser(db)
    .where('sessions.cookie_hash', '=', input.cookieHash)
    .where('sessions.revoked_at', 'is', null)
    .where('sessions.expires_at', '>', input.now)
    .executeTakeFirst()
}

export async function listLiveSessions(db: Db, input: { userId: number; now: Date }) {
  return await db
    .selectFrom('sessions')
    .selectAll()
    .where('user_id', '=', input.userId)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', input.now)
    .orderBy('created_at', 'desc')
    .execute()
}

export async function updateSessionExpiry(db: Db, input: { id: string; expiresAt: Date }): Promise<void> {
  await db.updateTable('sessions').set({ expires_at: input.expiresAt }).where('id', '=', input.id).execute()
}

/** Ends a session; with `userId` only when it is that person's. Its refresh tokens are worth nothing from then on. */
export async function revokeSession(db: Db, input: { id: string; userId?: number; at: Date }): Promise<void> {
  const { id, userId, at } = input
  await db
    .updateTable('sessions')
    .set({ revoked_at: at })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .$if(userId !== undefined, (query) => query.where('user_id', '=', userId ?? 0))
    .execute()
}

/** Ends all sessions of a person, or all but one. */
export async function revokeSessionsOfUser(
  db: Db,
  input: { userId: number; exceptId?: string; at: Date },
): Promise<void> {
  const { userId, exceptId, at } = input
  await db
    .updateTable('sessions')
    .set({ revoked_at: at })
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .$if(exceptId !== undefined, (query) => query.where('id', '!=', exceptId ?? ''))
    .execute()
}

/** Removes sign-ins, and what leads to one, that ended before `before`. */
export async function deleteEndedSessions(db: Db, input: { before: Date }): Promise<void> {
  await db
    .deleteFrom('sessions')
    .where((eb) => eb.or([eb('expires_at', '<', input.before), eb('revoked_at', '<', input.before)]))
    .execute()
  await db.deleteFrom('command_line_codes').where('expires_at', '<', input.before).execute()
  await db.deleteFrom('password_resets').where('expires_at', '<', input.before).execute()
  await db.deleteFrom('federated_sessions').where('expires_at', '<', input.before).execute()
}
