import { apiKeyPermissions } from '@godwit/contract'
import type { Deps } from '../deps.ts'
import type { Actor } from '../http/actor.ts'
import { listApiKeyCandidates, updateApiKeyLastUsed } from './queries.ts'
import { apiKeyPrefix, isUsable, matchesHash, readLookupPrefix } from './rules.ts'

/** `last_used_at` is kept to the minute: a write per request would cost more than the request. */
const lastUsedResolutionMs = 60_000

export function isApiKey(token: string): boolean {
  return token.startsWith(apiKeyPrefix)
}

/** Reads the database on every request: a revoked key fails on the next one. */
export async function findActorByApiKey(deps: Deps, token: string): Promise<Actor | undefined> {
  const now = deps.clock()
  const candidates = await listApiKeyCandidates(deps.db, { prefix: readLookupPrefix(token) })
  const key = candidates.filter((candidate) => matchesHash(token, candidate.hash))[0]
  if (key === undefined || !isUsable(key, now)) return undefined
  if (key.last_used_at === null || now.getTime() - key.last_used_at.getTime() > lastUsedResolutionMs) {
    await updateApiKeyLastUsed(deps.db, { id: key.id, at: now })
  }
  return {
    userId: key.user_id,
    email: key.email,
    issuer: key.jwt_issuer,
    credential: { kind: 'api_key', id: key.id, name: key.name },
    allows: apiKeyPermissions[key.permission],
  }
}
