import { randomUUID } from 'node:crypto'
import { createLocalJWKSet, errors, importJWK, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { z } from 'zod'
import { type SigningKey, type SigningKeys, toPublicJwk } from './signing-keys.ts'

export const accessTokenLifetimeSeconds = 900

const algorithm = 'RS256'
/** Clocks of instances may differ by this much. */
const clockToleranceSeconds = 5

/** What an access token of ours says (RFC 9068 in spirit; `typ` and a single `aud` are what the public client reads). */
export type AccessTokenClaims = {
  /** Id of the account, or of the service account. */
  sub: string
  /** Id of the session behind it. */
  sid: string
  email?: string
  /** Issuer that vouched for the person at sign-in. */
  idp?: string
  is_mfa?: boolean
  /** Seconds since the Unix epoch. */
  auth_time?: number
  /** `federated`: a CI job that signed in through a trust rule. */
  kind?: 'federated'
}

type KeySet = ReturnType<typeof createLocalJWKSet>

const Verified = z.object({ sub: z.string(), sid: z.string(), kind: z.literal('federated').optional() })

type VerifiedClaims = z.output<typeof Verified>

export type AccessTokens = {
  /** Who signs, and whom the tokens are for: `GODWIT_PUBLIC_URL`. */
  issuer: string
  sign: (claims: AccessTokenClaims) => Promise<{ token: string; expiresInSeconds: number }>
  /** The session that a token names, or why it is not one of ours, has ended or was altered. */
  verify: (token: string) => Promise<{ claims: VerifiedClaims } | { refusal: string }>
}

export function createAccessTokens(options: { keys: SigningKeys; issuer: string; clock: () => Date }): AccessTokens {
  const { keys, issuer, clock } = options
  const keySets = new WeakMap<SigningKey[], KeySet>()

  const verifyWith = async (published: SigningKey[], token: string) => {
    const keySet = keySets.get(published) ?? createLocalJWKSet({ keys: published.map(toPublicJwk) })
    keySets.set(published, keySet)
    return await jwtVerify(token, keySet, {
      algorithms: [algorithm],
      issuer,
      audience: issuer,
      currentDate: clock(),
      clockTolerance: clockToleranceSeconds,
      requiredClaims: ['exp', 'iat', 'sub', 'sid'],
    })
  }

  return {
    issuer,
    async sign(claims) {
      const key = await keys.current()
      const issuedAt = Math.floor(clock().getTime() / 1000)
      const token = await new SignJWT({ ...claims } satisfies JWTPayload)
        .setProtectedHeader({ alg: algorithm, kid: key.kid, typ: 'JWT' })
        .setIssuer(issuer)
        .setAudience(issuer)
        .setIssuedAt(issuedAt)
        .setExpirationTime(issuedAt + accessTokenLifetimeSeconds)
        .setJti(randomUUID())
        .sign(await importJWK(key.privateJwk, algorithm))
      return { token, expiresInSeconds: accessTokenLifetimeSeconds }
    },
    async verify(token) {
      try {
        const { payload } = await verifyWith(await keys.list(), token).catch(async (error: unknown) => {
          // Another instance may have made a key that it signs with already.
          if (error instanceof errors.JWKSNoMatchingKey) return await verifyWith(await keys.reread(), token)
          throw error
        })
        const claims = Verified.safeParse(payload).data
        return claims === undefined ? { refusal: 'its claims are not those of an access token' } : { claims }
      } catch (error) {
        if (error instanceof errors.JOSEError) return { refusal: error.message }
        throw error
      }
    },
  }
}
