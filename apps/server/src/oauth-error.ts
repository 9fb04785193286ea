/** RFC 6749 section 5.2, RFC 8693 section 2.2.2, RFC 8628 section 3.5; the last three as in RFC 6749 section 4.1.2.1. */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'invalid_target'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'authorization_pending'
  | 'slow_down'
  | 'expired_token'
  | 'access_denied'
  | 'server_error'
  | 'temporarily_unavailable'

const statuses: Partial<Record<OAuthErrorCode, number>> = {
  invalid_client: 401,
  slow_down: 429,
  server_error: 500,
  temporarily_unavailable: 503,
}

/** RFC 6749 section 5.2 leaves printable ASCII without the quotation mark and the backslash. */
const notInDescription = /[^\x20-\x21\x23-\x5b\x5d-\x7e]/g

/** A refusal of the token endpoint, in the form that OAuth clients read. */
export class OAuthError extends Error {
  readonly code: OAuthErrorCode
  readonly description: string

  constructor(code: OAuthErrorCode, description: string) {
    super(description)
    this.name = 'OAuthError'
    this.code = code
    this.description = description
  }

  get status(): number {
    return statuses[this.code] ?? 400
  }

  toResponse(): { error: OAuthErrorCode; error_description: string } {
    return { error: this.code, error_description: this.description.replaceAll(notInDescription, '?') }
  }
}
