import { createHmac, timingSafeEqual } from 'node:crypto'

/** What a signature is for: one made for one thing is worth nothing for another. */
type Purpose = 'form' | 'pending-sign-in'

export type PageSigner = {
  sign: (purpose: Purpose, value: string) => string
  verify: (purpose: Purpose, value: string, signature: string) => boolean
}

/** HMAC-SHA-256 over what the server hands to a browser and wants back unaltered. */
export function createPageSigner(secret: Buffer): PageSigner {
  const digest = (purpose: Purpose, value: string) =>
    createHmac('sha256', secret).update(`${purpose}\n${value}`).digest()
  return {
    sign: (purpose, value) => digest(purpose, value).toString('base64url'),
    verify(purpose, value, signature) {
      const expected = digest(purpose, value)
      const presented = Buffer.from(signature, 'base64url')
      return presented.length === expected.length && timingSafeEqual(presented, expected)
    },
  }
}
