import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

export const apiKeyPrefix = 'sb_api_'
const lookupLength = 8

/** A new key. 32 random bytes: guessing is hopeless, so a plain SHA-256 is enough to store it. */
export function generateApiKey(): string {
  return apiKeyPrefix + randomBytes(32).toString('base64url')
}

/** The part of a key that finds its row. It is no secret: the rest has more than 140 random bits. */
export function readLookupPrefix(key: string): string {
  return key.slice(apiKeyPrefix.length, apiKeyPrefix.length + lookupLength)
}

export function hashApiKey(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

export function matchesHash(key: string, hash: Buffer): boolean {
  return timingSafeEqual(hashApiKey(key), hash)
}

export function isUsable(key: { expires_at: Date | null; revoked_at: Date | null }, now: Date): boolean {
  return key.revoked_at === null && (key.expires_at === null || key.expires_at > now)
}
