import { z } from 'zod'

/** What is read of an ID token or a userinfo answer; the rest is nobody's business here. */
export type ProviderClaims = Record<string, unknown>

const entraOrigin = 'https://login.microsoftonline.com'
const entraIssuer = /^https:\/\/login\.microsoftonline\.com\/([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})\/v2\.0$/
/** The tenant of all personal Microsoft accounts. */
const personalAccountsTenant = '9188040d-6c67-4c5b-b112-36a304b66dad'

/**
 * Whether a token that names this issuer may come from a provider configured with that one, before anything was fetched.
 * Entra ID signs with the tenant's issuer, whatever `common`, `organizations` or domain the provider is configured with.
 */
export function mayIssue(configuredIssuer: string, issuer: string): boolean {
  const configured = new URL(configuredIssuer)
  if (configured.origin !== entraOrigin) return URL.parse(issuer)?.href === configured.href
  const tenant = entraIssuer.exec(issuer)?.[1]
  return (
    tenant !== undefined && !(configured.pathname.startsWith('/organizations/') && tenant === personalAccountsTenant)
  )
}

/** The issuer that a token must name, given the one of the provider's metadata, which for Entra ID may be a template. */
export function expectedIssuer(metadataIssuer: string, claims: ProviderClaims): string {
  return typeof claims.tid === 'string'
    ? metadataIssuer.replace('{tenantid}', () => String(claims.tid))
    : metadataIssuer
}

const asymmetricAlgorithms = ['RS256', 'PS256', 'ES256', 'EdDSA']

/** RS256 is what a provider that lists nothing must support (OpenID Connect Core 1.0, 15.1). */
export function chooseAlgorithms(listed: string[] | undefined): string[] {
  return asymmetricAlgorithms.filter((algorithm) => (listed ?? ['RS256']).includes(algorithm))
}

/** Plain ASCII only: another letter that lower-cases to one of these would match the account of somebody else. */
const Email = z.email().max(320)

export function readEmail(claims: ProviderClaims): string | undefined {
  return Email.safeParse(claims.email).data
}

/**
 * The e-mail when the provider vouches for it. Entra ID lets the administrator of any tenant write any e-mail, and says
 * whether the tenant owns its domain in the optional claim `xms_edov` only.
 */
export function readVerifiedEmail(providerId: string, claims: ProviderClaims): string | undefined {
  const isVerified = claims.email_verified === true || claims.email_verified === 'true'
  const isDomainVerified = [true, 1, '1', 'true'].some((value) => value === claims.xms_edov)
  return (providerId === 'microsoft' ? isDomainVerified : isVerified) ? readEmail(claims) : undefined
}

/** The name that a new account begins with. */
export function readDisplayName(claims: ProviderClaims): string | null {
  const { name } = claims
  if (typeof name !== 'string') return null
  return (
    name
      .replaceAll(/\p{Cc}/gu, ' ')
      .trim()
      .slice(0, 128) || null
  )
}

/** What a method proves (RFC 8176): that somebody knows something, has something, or is somebody. */
const factors: Record<string, 'knows' | 'has' | 'is'> = {
  pwd: 'knows',
  pin: 'knows',
  kba: 'knows',
  otp: 'has',
  sms: 'has',
  tel: 'has',
  hwk: 'has',
  swk: 'has',
  sc: 'has',
  pop: 'has',
  fpt: 'is',
  face: 'is',
  iris: 'is',
  retina: 'is',
  vbm: 'is',
}

/** Whether a second factor was used; null when the provider does not say how the person was authenticated. */
export function readIsMfa(claims: ProviderClaims): boolean | null {
  const { amr } = claims
  if (amr === undefined || amr === null) return null
  const methods = (Array.isArray(amr) ? amr : [amr]).map(String)
  if (methods.includes('mfa')) return true
  return new Set(methods.flatMap((method) => factors[method] ?? [])).size > 1
}

/** Why the claims of a token whose signature is good are refused, or undefined. `exp` and `nbf` have been judged. */
export function findClaimsFault(
  claims: ProviderClaims,
  expected: { configuredIssuer: string; metadataIssuer: string; clientId: string; now: Date; toleranceSeconds: number },
): string | undefined {
  const { configuredIssuer, metadataIssuer, clientId, now, toleranceSeconds } = expected
  const audiences = Array.isArray(claims.aud) ? claims.aud : [claims.aud]
  if (claims.iss !== expectedIssuer(metadataIssuer, claims) || !mayIssue(configuredIssuer, claims.iss)) {
    return 'it is from another issuer'
  }
  if (!audiences.includes(clientId)) return 'it is for another audience'
  // A token that another client was given names that client here, though it may be for us too: access tokens do.
  if (claims.azp !== undefined && claims.azp !== clientId) return 'it was issued to another client'
  if (audiences.length > 1 && claims.azp === undefined) return 'it does not say which of its audiences it was issued to'
  if (typeof claims.iat !== 'number') return 'it does not say when it was issued'
  if (claims.iat > now.getTime() / 1000 + toleranceSeconds) return 'it was issued in the future'
  if (!Subject.safeParse(claims.sub).success) return 'its subject is not one'
  return undefined
}

/** OpenID Connect Core 1.0, 2: at most 255 ASCII characters. */
const Subject = z.string().regex(/^[\x20-\x7e]{1,255}$/)

/** Entra ID publishes keys of several issuers together and says at each whose tokens it signs. */
export function findKeyFault(key: object | undefined, claims: ProviderClaims): string | undefined {
  if (key === undefined || !('issuer' in key) || typeof key.issuer !== 'string') return undefined
  return expectedIssuer(key.issuer, claims) === claims.iss ? undefined : 'its key signs for another issuer'
}
