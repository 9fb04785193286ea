import { findActorByApiKey, isApiKey } from '../api-keys/authenticate-api-key.ts'
import { apiKeyPrefix } from '../api-keys/rules.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { findActorByIdToken, readUnverifiedClaims } from '../identity-providers/authenticate-id-token.ts'
import { findActorByAccessToken, isJwt } from '../sessions/authenticate-access-token.ts'
import type { Actor } from './actor.ts'
import { refuseOverLimit } from './rate-limit.ts'

type TokenKind = {
  /** For the log. */
  name: string
  recognizes: (token: string, deps: Deps) => boolean
  /** The actor, or undefined when the token is unknown, expired or revoked. */
  findActor: (deps: Deps, token: string) => Promise<Actor | undefined>
}

/** The bearer tokens that are accepted. A further kind is one more file and one more line. */
const tokenKinds: TokenKind[] = [
  { name: 'an API key', recognizes: isApiKey, findActor: findActorByApiKey },
  { name: 'an access token', recognizes: isOurJwt, findActor: findActorByAccessToken },
  { name: 'an ID token', recognizes: isJwt, findActor: findActorByIdToken },
]

/** By what it says itself: whether that is true is for the one who is asked then. */
function isOurJwt(token: string, deps: Deps): boolean {
  return isJwt(token) && readUnverifiedClaims(token).iss === deps.accessTokens.issuer
}

/**
 * Checks the bearer token and the caller's rate. Failures count against the address; a good token is never refused for
 * what others behind the same address do.
 */
export async function authenticate(deps: Deps, authorization: string | undefined, address: string): Promise<Actor> {
  const token = readToken(authorization)
  const kind = token === undefined ? undefined : tokenKinds.find(({ recognizes }) => recognizes(token, deps))
  const actor = token === undefined ? undefined : await kind?.findActor(deps, token)
  if (actor === undefined) {
    refuseOverLimit(deps.rateLimiter.take(`failures:${address}`))
    // Below the limit only, so that nobody fills the disk with it. The credential itself is in no log.
    if (token !== undefined) deps.log.warn({ tried: kind?.name ?? 'another token', address }, 'refused a credential')
    throw new AppError('unauthenticated')
  }
  refuseOverLimit(deps.rateLimiter.take(`${actor.credential.kind}:${actor.credential.id}`))
  return actor
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
