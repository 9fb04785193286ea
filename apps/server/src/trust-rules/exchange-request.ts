import type { RequestSource } from '../http/actor.ts'
import { OAuthError } from '../oauth-error.ts'

export const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'
const subjectTokenTypes = ['urn:ietf:params:oauth:token-type:id_token', 'urn:ietf:params:oauth:token-type:jwt']

/** The parameters of RFC 8693 section 2.1 that matter here. */
export type TokenExchange = {
  subjectToken: string
  subjectTokenType: string
  /** What the token shall be good for: this server, if anything is said. */
  audience?: string | undefined
  resource?: string | undefined
  /** Ours: which service account is meant, when several trust the same job. */
  serviceAccountId?: string | undefined
  /** Where the request comes from, for the audit log. */
  source: RequestSource
}

/** The service account that a request names, once the request has been found to make sense. */
export function readServiceAccountId(input: TokenExchange, publicUrl: string): number | undefined {
  if (!subjectTokenTypes.includes(input.subjectTokenType)) {
    throw new OAuthError('invalid_request', `subject_token_type: must be one of ${subjectTokenTypes.join(', ')}`)
  }
  for (const target of [input.audience, input.resource]) {
    if (target !== undefined && target.replace(/\/+$/, '') !== publicUrl) {
      throw new OAuthError('invalid_target', `audience, resource: tokens are issued for ${publicUrl} only`)
    }
  }
  const { serviceAccountId } = input
  if (serviceAccountId === undefined) return undefined
  if (/^\d{1,15}$/.test(serviceAccountId)) return Number(serviceAccountId)
  throw new OAuthError('invalid_request', 'service_account_id: must be an id')
}
