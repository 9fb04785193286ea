import { findCallerByApiKey, isApiKey } from '../api-keys/authenticate-api-key.ts'
import { apiKeyPrefix } from '../api-keys/rules.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { findCallerByIdToken, readUnverifiedClaims } from '../identity-providers/authenticate-id-token.ts'
import { findCallerByAccessToken, isJwt } from '../sessions/authenticate-access-token.ts'
import type { Actor, Caller, RequestSource } from './actor.ts'
import { refuseOverLimit } from './rate-limit.ts'

/** Why a token is good for nothing here. For the log: the caller is told only that it is. */
export type Refusal = { refusal: string }

type TokenKind = {
  /** For the log. */
  name: string
  recognizes: (token: string, deps: Deps) => boolean
  findCaller: (deps: Deps, token: string) => Promise<Caller | Refusal>
}

/** The bearer tokens that are accepted. A further kind is one more file and one more line. */
const tokenKinds: TokenKind[] = [
  { name: 'an API key', recognizes: isApiKey, findCaller: findCallerByApiKey },
  { name: 'an access token', recognizes: isOurJwt, findCaller: findCallerByAccessToken },
  { name: 'an ID token', recognizes: isJwt, findCaller: findCallerByIdToken },
]

/** By what it says itself: whether that is true is for the one who is asked then. */
function isOurJwt(token: string, deps: Deps): boolean {
  return isJwt(token) && readUnverifiedClaims(token).iss === deps.accessTokens.issuer
}

/**
 * Checks the bearer token and the caller's rate. Failures count against the address; a good token is never refused for
 * what others behind the same address do.
 */
export async function authenticate(
  deps: Deps,
  authorization: string | undefined,
  source: RequestSource,
): Promise<Actor> {
  const { address = 'unknown' } = source
  const token = readToken(authorization)
  const kind = token === undefined ? undefined : tokenKinds.find(({ recognizes }) => recognizes(token, deps))
  const found =
    token === undefined ? undefined : ((await kind?.findCaller(deps, token)) ?? { refusal: 'of no known kind' })
  if (found === undefined || 'refusal' in found) {
    refuseOverLimit(deps.rateLimiter.take(`failures:${address}`))
    // Below the limit only, so that nobody fills the disk with it. The credential itself is in no log.
    if (found !== undefined) {
      deps.log.warn({ tried: kind?.name ?? 'another token', reason: found.refusal, address }, 'refused a credential')
    }
    throw new AppError('unauthenticated')
  }
  refuseOverLimit(deps.rateLimiter.take(`${found.credential.kind}:${found.credential.id}`))
  return { ...found, source }
}

/**
 * The public client takes from its environment only what begins like an API key, also in a CI job that has exchanged its
 * token: an access token is recognised behind that beginning too.
 */
function readToken(authorization: string | undefined): string | undefined {
  const token = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
  if (token === undefined || !isApiKey(token)) return token
  const behind = token.slice(apiKeyPrefix.length)
  return isJwt(behind) ? behind : token
}
