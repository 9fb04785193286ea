import { findActorByApiKey, isApiKey } from '../api-keys/authenticate-api-key.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { Actor } from './actor.ts'
import { refuseOverLimit } from './rate-limit.ts'

type TokenKind = {
  recognizes: (token: string) => boolean
  /** The actor, or undefined when the token is unknown, expired or revoked. */
  findActor: (deps: Deps, token: string) => Promise<Actor | undefined>
}

/** The bearer tokens that are accepted. A further kind is one more file and one more line. */
const tokenKinds: TokenKind[] = [{ recognizes: isApiKey, findActor: findActorByApiKey }]

/**
 * Checks the bearer token and the caller's rate. Failures count against the address; a good token is never refused for
 * what others behind the same address do.
 */
export async function authenticate(deps: Deps, authorization: string | undefined, address: string): Promise<Actor> {
  const token = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
  const kind = token === undefined ? undefined : tokenKinds.find(({ recognizes }) => recognizes(token))
  const actor = token === undefined ? undefined : await kind?.findActor(deps, token)
  if (actor === undefined) {
    refuseOverLimit(deps.rateLimiter.take(`failures:${address}`))
    throw new AppError('unauthenticated')
  }
  refuseOverLimit(deps.rateLimiter.take(`${actor.credential.kind}:${actor.credential.id}`))
  return actor
}
