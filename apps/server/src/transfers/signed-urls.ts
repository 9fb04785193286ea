import { createHmac, timingSafeEqual } from 'node:crypto'

/** What a signed URL allows. The purpose is part of the signature: a download URL cannot be turned into an upload URL. */
export type SignedPurpose = 'upload' | 'download' | 'diagnostics-upload' | 'diagnostics-download'

const paths: Record<SignedPurpose, (key: string) => string> = {
  upload: (key) => `/uploads/${key}`,
  download: (key) => `/downloads/${key}`,
  'diagnostics-upload': () => '/diagnostics/upload',
  'diagnostics-download': () => '/diagnostics/download',
}

export type UrlSigner = {
  /** An absolute URL. Without `expiresAt` it is the same for the same key, always. */
  sign: (purpose: SignedPurpose, key: string, expiresAt?: Date) => string
  verify: (
    purpose: SignedPurpose,
    key: string,
    query: { expires?: string | undefined; signature: string },
    now: Date,
  ) => 'valid' | 'expired' | 'invalid'
}

/** Signs by HMAC-SHA-256 over purpose, key and expiry, with a secret that all instances share. */
export function createUrlSigner(options: { publicUrl: string; secret: Buffer }): UrlSigner {
  const computeSignature = (purpose: SignedPurpose, key: string, expires: string) =>
    createHmac('sha256', options.secret).update(`${purpose}\n${key}\n${expires}`).digest('base64url')
  return {
    sign(purpose, key, expiresAt) {
      const expires = expiresAt === undefined ? '' : String(Math.floor(expiresAt.getTime() / 1000))
      const query = new URLSearchParams(expires === '' ? {} : { expires })
      query.set('signature', computeSignature(purpose, key, expires))
      return `${options.publicUrl}${paths[purpose](key)}?${query}`
    },
    verify(purpose, key, query, now) {
      const expires = query.expires ?? ''
      const expected = Buffer.from(computeSignature(purpose, key, expires))
      const given = Buffer.from(query.signature)
      if (expected.length !== given.length || !timingSafeEqual(expected, given)) return 'invalid'
      return expires !== '' && Number(expires) * 1000 <= now.getTime() ? 'expired' : 'valid'
    },
  }
}
