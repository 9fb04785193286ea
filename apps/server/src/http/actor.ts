import type { Permission } from '@godwit/contract'

/** Who sends a request, once its credential has been checked. */
export type Actor = {
  /** undefined: the credential is good, but no account belongs to it yet. */
  userId: number | undefined
  email: string
  /** Who vouches for the e-mail. */
  issuer: string
  credential: { kind: 'api_key'; id: number; name: string }
  /** What the credential leaves of the account's rights. */
  allows: ReadonlySet<Permission>
}
