import { createHash, randomBytes } from 'node:crypto'

/** A secret for a link, a cookie or a code: 32 random bytes in 43 characters that a URL takes as they are. */
export function generateToken(): string {
  return randomBytes(32).toString('base64url')
}

/** What is stored of a secret that has at least 128 random bits: guessing is hopeless, so a plain SHA-256 is enough. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
