import { apiKeyPermissions } from '@godwit/contract'
import { decodeJwt } from 'jose'
import type { Deps } from '../deps.ts'
import type { Caller, Credential } from '../http/actor.ts'
import type { Refusal } from '../http/authenticate.ts'
import { findOrLinkAccount, type Identity } from '../identities/actions.ts'
import { hashToken } from '../random-tokens.ts'
import type { IdentityProvider } from './identity-provider.ts'
import { mayIssue, type ProviderClaims, readIsMfa, readVerifiedEmail } from './rules.ts'
import { type IdTokenClaims, verifyIdToken } from './verify-id-token.ts'

/** What a JWT says before anybody has checked that it is true; only good for choosing who checks it. */
export function readUnverifiedClaims(token: string): ProviderClaims {
  try {
    return decodeJwt(token)
  } catch {
    return {}
  }
}

/**
 * Whoever the ID token of a configured provider is about. A token of any other issuer is refused before anything is
 * fetched.
 */
export async function findCallerByIdToken(deps: Deps, token: string): Promise<Caller | Refusal> {
  const unverified = readUnverifiedClaims(token)
  const provider = findProvider(deps.identityProviders, unverified)
  const refuse = (reason: string) => ({ refusal: `of ${shorten(unverified.iss) ?? 'nobody'}: ${reason}` })
  if (provider === undefined) return refuse('its issuer is not configured')
  const verdict = await verifyIdToken(deps, provider, token)
  if ('refusal' in verdict) return refuse(verdict.refusal)
  const { claims } = verdict
  const identity = toIdentity(provider, claims)
  const account = await findOrLinkAccount(deps, identity)
  const common = { credential: toCredential(token, claims), allows: apiKeyPermissions.full }
  if (account !== undefined) {
    const { id: userId, email, display_name } = account
    return { kind: 'person', userId, email, name: display_name ?? email, ...common }
  }
  const email = identity.verifiedEmail
  if (email === undefined) return refuse('no account is linked to it, and its e-mail is not verified')
  return { kind: 'newcomer', email, issuer: claims.iss, subject: claims.sub, ...common }
}

/** Two providers may share an issuer, such as `common` and one tenant of Entra ID; the audience tells them apart. */
function findProvider(providers: IdentityProvider[], { iss, aud }: ProviderClaims): IdentityProvider | undefined {
  if (typeof iss !== 'string') return undefined
  const candidates = providers.filter(({ config }) => mayIssue(config.issuer, iss))
  return candidates.find(({ config }) => [aud].flat().includes(config.clientId)) ?? candidates[0]
}

export function toIdentity(provider: IdentityProvider, claims: IdTokenClaims): Identity {
  return {
    issuer: claims.iss,
    subject: claims.sub,
    verifiedEmail: readVerifiedEmail(provider.config.id, claims),
  }
}

function toCredential(token: string, claims: IdTokenClaims): Credential {
  const ids = [claims.jti, claims.sid].filter((id) => typeof id === 'string' && id !== '')
  const authenticatedAt = typeof claims.auth_time === 'number' ? claims.auth_time : claims.iat
  return {
    kind: 'id_token',
    id: shorten(ids[0]) ?? hashToken(token).toString('base64url').slice(0, 22),
    issuer: claims.iss,
    createdAt: new Date(authenticatedAt * 1000),
    isMfa: readIsMfa(claims) ?? undefined,
  }
}

/** A stranger chooses what a token says; the log need not hold all of it. */
function shorten(value: unknown): string | undefined {
  return typeof value === 'string' ? value.slice(0, 200).replaceAll('\0', '').toWellFormed() : undefined
}
