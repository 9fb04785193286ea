import type { ApiKeyExpiry, ApiKeyPermission } from '@godwit/contract'
import type { Db } from '../db/connection.ts'
import { violatesForeignKey } from '../db/errors.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { hashToken } from '../random-tokens.ts'
import { insertApiKey, type KeyHolder, updateApiKeyAsRevoked } from './queries.ts'
import { chooseExpiry, generateApiKey, readLookupPrefix } from './rules.ts'

/** Stores a key of a person or a service account and returns it with its text, which is kept nowhere. */
export async function createApiKey(
  db: Db,
  input: {
    holder: KeyHolder
    name: string
    permission: ApiKeyPermission
    createdAt?: Date
    expiresAt: Date | null
    key?: string
  },
) {
  const { holder, name, permission, createdAt = new Date(), expiresAt, key = generateApiKey() } = input
  const prefix = readLookupPrefix(key)
  const row = await insertApiKey(db, { holder, name, prefix, hash: hashToken(key), permission, createdAt, expiresAt })
  return { ...row, key }
}

export async function createPersonalApiKey(
  deps: Pick<Deps, 'db' | 'clock'>,
  input: { userId: number; name: string; permission: ApiKeyPermission; expiresIn: ApiKeyExpiry },
) {
  const { userId, name, permission, expiresIn } = input
  const now = deps.clock()
  try {
    const expiresAt = chooseExpiry(expiresIn, now)
    return await createApiKey(deps.db, { holder: { userId }, name, permission, createdAt: now, expiresAt })
  } catch (error) {
    // The account was deleted at the same time.
    if (violatesForeignKey(error)) throw new AppError('not_found')
    throw error
  }
}

export async function revokePersonalApiKey(
  deps: Pick<Deps, 'db' | 'clock'>,
  input: { userId: number; keyId: number },
): Promise<void> {
  const { userId, keyId } = input
  const isTheirs = await updateApiKeyAsRevoked(deps.db, { id: keyId, holder: { userId }, at: deps.clock() })
  if (!isTheirs) throw new AppError('not_found')
}
