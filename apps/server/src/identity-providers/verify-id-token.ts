import { errors, type JWTHeaderParameters, jwtVerify } from 'jose'
import type { Deps } from '../deps.ts'
import {
  type DiscoveredProvider,
  describeError,
  type IdentityProvider,
  providerUnavailable,
} from './identity-provider.ts'
import { findClaimsFault, findKeyFault, type ProviderClaims } from './rules.ts'

/** The clocks of a provider and of this server may differ by this much. */
const toleranceSeconds = 30

export type IdTokenClaims = ProviderClaims & { iss: string; sub: string; iat: number }

export type Verdict = { claims: IdTokenClaims } | { refusal: string }

/**
 * Judges an ID token by itself: signature, issuer, audience, times. Throws `unavailable` when that needs keys that cannot
 * be fetched.
 */
export async function verifyIdToken(deps: Deps, provider: IdentityProvider, token: string): Promise<Verdict> {
  const discovered = await provider.discover()
  const now = deps.clock()
  try {
    const { payload, protectedHeader } = await jwtVerify(token, findKey(deps, provider, discovered), {
      algorithms: discovered.algorithms,
      currentDate: now,
      clockTolerance: toleranceSeconds,
      requiredClaims: ['exp'],
    })
    const { issuer: configuredIssuer, clientId } = provider.config
    const expected = { configuredIssuer, metadataIssuer: discovered.issuer, clientId, now, toleranceSeconds }
    const refusal =
      findTypeFault(protectedHeader) ??
      findClaimsFault(payload, expected) ??
      findKeyFault(
        discovered.keys.jwks()?.keys.find(({ kid }) => kid === protectedHeader.kid),
        payload,
      )
    return refusal === undefined ? { claims: payload as IdTokenClaims } : { refusal }
  } catch (error) {
    if (error instanceof errors.JOSEError) return { refusal: error.message }
    throw error
  }
}

/** Tells a key that does not exist (the token's fault) from keys that cannot be read (the provider's). */
function findKey(deps: Deps, provider: IdentityProvider, { keys }: DiscoveredProvider): typeof keys {
  const find = async (...input: Parameters<typeof keys>) => {
    try {
      return await keys(...input)
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) throw error
      if (error instanceof errors.JOSENotSupported) throw error
      deps.log.warn(
        { provider: provider.config.id, reason: describeError(error) },
        'the keys of an identity provider cannot be read',
      )
      throw providerUnavailable(provider.config)
    }
  }
  return find as typeof keys
}

/** Access tokens (RFC 9068) and logout tokens (OpenID Connect Back-Channel Logout 1.0) name their type. */
function findTypeFault(header: JWTHeaderParameters): string | undefined {
  return header.typ === undefined || header.typ.toUpperCase() === 'JWT' ? undefined : 'it is no ID token by its type'
}
