import type { Db } from '../db/connection.ts'

export async function insertCode(
  db: Db,
  input: {
    hash: Buffer
    userId: number
    target: string
    issuer: string
    isMfa: boolean | null
    createdAt: Date
    expiresAt: Date
  },
): Promise<void> {
  await db
    .insertInto('command_line_codes')
    .values({
      hash: input.hash,
      user_id: input.userId,
      target: input.target,
      issuer: input.issuer,
      is_mfa: input.isMfa,
      created_at: input.createdAt,
      expires_at: input.expiresAt,
    })
    .execute()
}

export async function findUserIdOfCode(db: Db, input: { hash: Buffer }): Promise<number | undefined> {
  const row = await db
    .selectFrom('command_line_codes')
    .select('user_id')
    .where('hash', '=', input.hash)
    .executeTakeFirst()
  return row?.user_id
}

export async function lockCode(db: Db, input: { hash: Buffer }) {
  return await db
    .selectFrom('command_line_codes')
    .selectAll()
    .where('hash', '=', input.hash)
    .forUpdate()
    .executeTakeFirst()
}

export async function updateCodeUsed(db: Db, input: { hash: Buffer; sessionId: string; at: Date }): Promise<void> {
  await db
    .updateTable('command_line_codes')
    .set({ used_at: input.at, session_id: input.sessionId })
    .where('hash', '=', input.hash)
    .execute()
}

export async function insertRefreshToken(
  db: Db,
  input: { hash: Buffer; sessionId: string; createdAt: Date; expiresAt: Date },
): Promise<void> {
  await db
    .insertInto('refresh_tokens')
    .values({
      hash: input.hash,
      session_id: input.sessionId,
      created_at: input.createdAt,
      expires_at: input.expiresAt,
    })
    .execute()
}

/** With its session and the account, whether they have ended or not. */
export async function lockRefreshToken(db: Db, input: { hash: Buffer }) {
  return await db
    .selectFrom('refresh_tokens as token')
    .innerJoin('sessions as session', 'session.id', 'token.session_id')
    .innerJoin('users', 'users.id', 'session.user_id')
    .select([
      'token.hash',
      'token.session_id',
      'token.expires_at',
      'token.used_at',
      'session.user_id',
      'session.issuer',
      'session.is_mfa',
      'session.created_at as session_created_at',
      'session.revoked_at',
      'users.email',
    ])
    .where('token.hash', '=', input.hash)
    .forUpdate('token')
    .executeTakeFirst()
}

export async function updateRefreshTokenUsed(db: Db, input: { hash: Buffer; at: Date }): Promise<void> {
  await db
    .updateTable('refresh_tokens')
    .set({ used_at: input.at })
    .where('hash', '=', input.hash)
    .where('used_at', 'is', null)
    .execute()
}

/** Once the grace is over a used token serves only to notice a thief, and the session it belongs to may last for ever. */
export async function deleteUsedRefreshTokens(db: Db, input: { before: Date }): Promise<void> {
  await db.deleteFrom('refresh_tokens').where('used_at', '<', input.before).execute()
}
