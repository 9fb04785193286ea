import { decodeJwt, errors, type JWTPayload, jwtVerify } from 'jose'
import { findKeysOfIssuer } from './issuer-keys.ts'

/** Signatures by a key that only the issuer has. */
const algorithms = ['RS256', 'PS256', 'ES256']
const clockToleranceSeconds = 30
/** Tokens of CI systems live for minutes, at most as long as their job. For so long at least a used one is remembered. */
export const longestLifetimeSeconds = 3600
const maxTokenIdLength = 512

export type CiTokenClaims = JWTPayload & { iss: string; jti: string; exp: number; iat: number }

/** The claims of a token that is good as a token; or why it is not, in words that say nothing secret. */
export type CiTokenVerdict = { claims: CiTokenClaims } | { refusal: string }

/** What a token says of itself, unchecked: to know whom to ask, and for the log. */
export function peekClaims(token: string): JWTPayload | undefined {
  try {
    return decodeJwt(token)
  } catch {
    return undefined
  }
}

/** Throws IssuerUnavailableError when the issuer's keys cannot be read. */
export async function verifyCiToken(
  token: string,
  options: { issuers: string[]; audience: string; now: Date },
): Promise<CiTokenVerdict> {
  const { issuers, audience, now } = options
  const issuer = peekClaims(token)?.iss
  if (issuer === undefined) return { refusal: 'it is not a JWT that names its issuer' }
  if (!issuers.includes(issuer)) return { refusal: 'this server trusts no such issuer' }
  try {
    const { payload } = await jwtVerify(token, findKeysOfIssuer(issuer), {
      algorithms,
      issuer,
      audience,
      currentDate: now,
      clockTolerance: clockToleranceSeconds,
      requiredClaims: ['exp', 'iat', 'jti'],
    })
    const refusal = findFault(payload, options)
    return refusal === undefined ? { claims: payload as CiTokenClaims } : { refusal }
  } catch (error) {
    if (error instanceof errors.JOSEError) return { refusal: describeFault(error, audience) }
    throw error
  }
}

/** What jose leaves to us. */
function findFault(claims: JWTPayload, options: { audience: string; now: Date }): string | undefined {
  const { aud, exp = 0, iat = 0, jti } = claims
  // A token that is for others as well is in the hands of others as well.
  if (Array.isArray(aud) && aud.length > 1) return `its audience must be ${options.audience} and nothing else`
  if (iat > options.now.getTime() / 1000 + clockToleranceSeconds) return 'it was issued in the future'
  if (exp - iat > longestLifetimeSeconds) return `it lives longer than ${longestLifetimeSeconds} seconds`
  if (typeof jti !== 'string' || jti === '' || jti.length > maxTokenIdLength) return 'its jti must be a string'
  return undefined
}

function describeFault(error: errors.JOSEError, audience: string): string {
  if (error instanceof errors.JWTExpired) return 'it has expired'
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.reason === 'missing') return `it has no ${error.claim}`
    if (error.claim === 'aud') return `its audience must be ${audience}`
    if (error.claim === 'nbf') return 'it is not valid yet'
    return `its ${error.claim} is wrong`
  }
  if (error instanceof errors.JOSEAlgNotAllowed || error instanceof errors.JOSENotSupported)
    return `it must be signed with one of ${algorithms.join(', ')}`
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return 'its issuer does not publish the key that it names'
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'its signature is wrong'
  return 'it is malformed'
}
