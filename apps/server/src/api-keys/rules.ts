import { timingSafeEqual } from 'node:crypto'
import type { ApiKeyExpiry } from '@godwit/contract'
import { generateToken, hashToken } from '../random-tokens.ts'
import { dayMs } from '../time.ts'

export const apiKeyPrefix = 'sb_api_'
const lookupLength = 8

/** A new key. */
export function generateApiKey(): string {
  return apiKeyPrefix + generateToken()
}

/** The part of a key that finds its row. It is no secret: the rest has more than 140 random bits. */
export function readLookupPrefix(key: string): string {
  return key.slice(apiKeyPrefix.length, apiKeyPrefix.length + lookupLength)
}

export function matchesHash(key: string, hash: Buffer): boolean {
  return timingSafeEqual(hashToken(key), hash)
}

export function isUsable(key: { expires_at: Date | null; revoked_at: Date | null }, now: Date): boolean {
  return key.revoked_at === null && (key.expires_at === null || key.expires_at > now)
}

const lifetimeDays: Record<ApiKeyExpiry, number | null> = { '30d': 30, '90d': 90, '1y': 365, none: null }

/** When a key made now ends; null: never. */
export function chooseExpiry(expiresIn: ApiKeyExpiry, now: Date): Date | null {
  const days = lifetimeDays[expiresIn]
  return days === null ? null : new Date(now.getTime() + days * dayMs)
}
