import type { ApiKeyPermission } from '@godwit/contract'
import type { Db } from '../db/connection.ts'

export async function listApiKeyCandidates(db: Db, input: { prefix: string }) {
  return await db
    .selectFrom('api_keys')
    .innerJoin('users', 'users.id', 'api_keys.user_id')
    .select([
      'api_keys.id',
      'api_keys.user_id',
      'api_keys.name',
      'api_keys.hash',
      'api_keys.permission',
      'api_keys.expires_at',
      'api_keys.revoked_at',
      'api_keys.last_used_at',
      'users.email',
      'users.jwt_issuer',
    ])
    .where('api_keys.prefix', '=', input.prefix)
    .execute()
}

export async function insertApiKey(
  db: Db,
  input: {
    userId: number
    name: string
    prefix: string
    hash: Buffer
    permission: ApiKeyPermission
    expiresAt: Date | null
  },
): Promise<{ id: number }> {
  return await db
    .insertInto('api_keys')
    .values({
      user_id: input.userId,
      name: input.name,
      prefix: input.prefix,
      hash: input.hash,
      permission: input.permission,
      expires_at: input.expiresAt,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
}

export async function updateApiKeyLastUsed(db: Db, input: { id: number; at: Date }): Promise<void> {
  await db.updateTable('api_keys').set({ last_used_at: input.at }).where('id', '=', input.id).execute()
}

export async function revokeApiKey(db: Db, input: { id: number; at: Date }): Promise<void> {
  await db
    .updateTable('api_keys')
    .set({ revoked_at: input.at })
    .where('id', '=', input.id)
    .where('revoked_at', 'is', null)
    .execute()
}
