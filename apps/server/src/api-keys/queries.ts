import type { ApiKeyPermission } from '@godwit/contract'
import type { ExpressionBuilder } from 'kysely'
import type { Db } from '../db/connection.ts'
import type { Database } from '../db/tables.ts'

export type KeyHolder = { userId: number } | { serviceAccountId: number }

export async function listApiKeyCandidates(db: Db, input: { prefix: string }) {
  return await db
    .selectFrom('api_keys')
    .leftJoin('users', 'users.id', 'api_keys.user_id')
    .leftJoin('service_accounts as service_account', 'service_account.id', 'api_keys.service_account_id')
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
      'users.display_name',
      'service_account.id as service_account_id',
      'service_account.organization_id',
      'service_account.name as service_account_name',
      'service_account.role as service_account_role',
    ])
    .where('api_keys.prefix', '=', input.prefix)
    .execute()
}

export async function insertApiKey(
  db: Db,
  input: {
    holder: KeyHolder
    name: string
    prefix: string
    hash: Buffer
    permission: ApiKeyPermission
    createdAt: Date
    expiresAt: Date | null
  },
) {
  return await db
    .insertInto('api_keys')
    .values({
      user_id: 'userId' in input.holder ? input.holder.userId : null,
      service_account_id: 'serviceAccountId' in input.holder ? input.holder.serviceAccountId : null,
      name: input.name,
      prefix: input.prefix,
      hash: input.hash,
      permission: input.permission,
      created_at: input.createdAt,
      expires_at: input.expiresAt,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function updateApiKeyLastUsed(db: Db, input: { id: number; at: Date }): Promise<void> {
  await db.updateTable('api_keys').set({ last_used_at: input.at }).where('id', '=', input.id).execute()
}

/** Newest first, without those that were revoked. */
export async function listApiKeys(db: Db, input: { holder: KeyHolder }) {
  return await db
    .selectFrom('api_keys')
    .selectAll()
    .where(isHeldBy(input.holder))
    .where('revoked_at', 'is', null)
    .orderBy('id', 'desc')
    .execute()
}

/** Whether the holder has, or had, this key. One that was revoked before keeps the time of that. */
export async function updateApiKeyAsRevoked(
  db: Db,
  input: { id: number; holder: KeyHolder; at: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('api_keys')
    .set((eb) => ({ revoked_at: eb.fn.coalesce('revoked_at', eb.val(input.at)) }))
    .where('id', '=', input.id)
    .where(isHeldBy(input.holder))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

function isHeldBy(holder: KeyHolder) {
  return (eb: ExpressionBuilder<Database, 'api_keys'>) =>
    'userId' in holder ? eb('user_id', '=', holder.userId) : eb('service_account_id', '=', holder.serviceAccountId)
}
