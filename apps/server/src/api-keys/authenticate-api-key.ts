import { apiKeyPermissions, serviceAccountRolePermissions } from '@godwit/contract'
import type { Deps } from '../deps.ts'
import type { Caller } from '../http/actor.ts'
import type { Refusal } from '../http/authenticate.ts'
import { listApiKeyCandidates, updateApiKeyLastUsed } from './queries.ts'
import { apiKeyPrefix, isUsable, matchesHash, readLookupPrefix } from './rules.ts'

/** `last_used_at` is kept to the minute: a write per request would cost more than the request. */
const lastUsedResolutionMs = 60_000

export function isApiKey(token: string): boolean {
  return token.startsWith(apiKeyPrefix)
}

/** Reads the database on every request: a revoked key fails on the next one. */
export async function findCallerByApiKey(deps: Deps, token: string): Promise<Caller | Refusal> {
  const now = deps.clock()
  const candidates = await listApiKeyCandidates(deps.db, { prefix: readLookupPrefix(token) })
  const key = candidates.filter((candidate) => matchesHash(token, candidate.hash))[0]
  if (key === undefined) return { refusal: 'unknown' }
  if (!isUsable(key, now)) return { refusal: `key ${key.id} has expired or was revoked` }
  if (key.last_used_at === null || now.getTime() - key.last_used_at.getTime() > lastUsedResolutionMs) {
    await updateApiKeyLastUsed(deps.db, { id: key.id, at: now })
  }
  return toCaller(key) ?? { refusal: `key ${key.id} has no holder` }
}

function toCaller(key: Awaited<ReturnType<typeof listApiKeyCandidates>>[number]): Caller | undefined {
  const credential = { kind: 'api_key' as const, id: key.id, name: key.name }
  if (key.user_id !== null && key.email !== null) {
    const { user_id: userId, email } = key
    const name = key.display_name ?? email
    return { kind: 'person', userId, email, name, credential, allows: apiKeyPermissions[key.permission] }
  }
  const { service_account_id: serviceAccountId, organization_id, service_account_name, service_account_role } = key
  if (serviceAccountId === null || organization_id === null || service_account_role === null) return undefined
  return {
    kind: 'service_account',
    serviceAccountId,
    organizationId: organization_id,
    role: service_account_role,
    name: service_account_name ?? '',
    credential,
    allows: serviceAccountRolePermissions[service_account_role],
  }
}
