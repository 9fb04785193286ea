import type { ApiKeyPermission } from '@godwit/contract'
import type { Db } from '../db/connection.ts'
import { insertApiKey } from './queries.ts'
import { generateApiKey, hashApiKey, readLookupPrefix } from './rules.ts'

/** Stores a key of an account and returns its text, which is kept nowhere. */
export async function createApiKey(
  db: Db,
  input: { userId: number; name: string; permission: ApiKeyPermission; expiresAt: Date | null; key?: string },
): Promise<{ id: number; key: string }> {
  const key = input.key ?? generateApiKey()
  const { id } = await insertApiKey(db, {
    userId: input.userId,
    name: input.name,
    prefix: readLookupPrefix(key),
    hash: hashApiKey(key),
    permission: input.permission,
    expiresAt: input.expiresAt,
  })
  return { id, key }
}
