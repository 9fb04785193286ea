import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { SignedPurpose } from './signed-urls.ts'

/** The signature of the URL is the only authorization that a transfer needs; a bearer token along with it is ignored. */
export function requireSignature(
  deps: Deps,
  purpose: SignedPurpose,
  key: string,
  query: { expires?: string | undefined; signature: string },
): void {
  const verdict = deps.urls.verify(purpose, key, query, deps.clock())
  if (verdict === 'valid') return
  if (verdict === 'expired' && purpose === 'upload') throw new AppError('upload_expired')
  throw new AppError('invalid_signature', verdict === 'expired' ? 'expires: is past' : undefined)
}
