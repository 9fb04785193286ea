import { createRemoteJWKSet, errors } from 'jose'
import { z } from 'zod'

type KeySet = ReturnType<typeof createRemoteJWKSet>

const timeoutMs = 5_000
/** Issuers hardly ever move their keys. The keys themselves are read again more often, as jose does by itself. */
const rediscoverAfterMs = 3600_000

/** OpenID Connect Discovery 1.0, section 3. */
const Metadata = z.object({ issuer: z.string(), jwks_uri: z.url({ protocol: /^https?$/ }) })

/** The issuer does not answer, or not with what it should. */
export class IssuerUnavailableError extends Error {}

/** By issuer. Only issuers that the operator has configured are asked, so that there are few. */
const known = new Map<string, { keys: Promise<KeySet>; readAt: number }>()

/** The function by which jose finds the key of a token. Throws IssuerUnavailableError when it cannot be known. */
export function findKeysOfIssuer(issuer: string): KeySet {
  const find = async (...input: Parameters<KeySet>) => {
    const keys = await getKeySet(issuer)
    try {
      return await keys(...input)
    } catch (error) {
      if (isFaultOfToken(error)) throw error
      throw new IssuerUnavailableError(`the keys of ${issuer} cannot be read`, { cause: error })
    }
  }
  return find as KeySet
}

function isFaultOfToken(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  )
}

/** One request for all who ask at the same time; one that failed is not remembered. */
async function getKeySet(issuer: string): Promise<KeySet> {
  const cached = known.get(issuer)
  if (cached !== undefined && performance.now() - cached.readAt < rediscoverAfterMs) return await cached.keys
  const keys = discoverKeySet(issuer)
  const entry = { keys, readAt: performance.now() }
  known.set(issuer, entry)
  try {
    return await keys
  } catch (error) {
    if (known.get(issuer) === entry) known.delete(issuer)
    throw error
  }
}

async function discoverKeySet(issuer: string): Promise<KeySet> {
  try {
    const response = await fetch(`${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`, {
      signal: AbortSignal.timeout(timeoutMs),
      redirect: 'error',
    })
    if (response.status !== 200) throw new Error(`it answers ${response.status}`)
    const metadata = Metadata.parse(await response.json())
    if (metadata.issuer !== issuer) throw new Error('it describes another issuer')
    return createRemoteJWKSet(new URL(metadata.jwks_uri), { timeoutDuration: timeoutMs })
  } catch (error) {
    throw new IssuerUnavailableError(`the metadata of ${issuer} cannot be read`, { cause: error })
  }
}
