import type { Permission, ServiceAccountRole } from '@godwit/contract'
import { AppError } from '../errors.ts'

/** Who sends a request, once its credential has been checked, and from where. */
export type Actor = Caller & { source: RequestSource }

/** What a credential says of who shows it. */
export type Caller = (Person | ServiceAccountActor | Newcomer) & {
  credential: Credential
  /** What the credential leaves of the rights. */
  allows: ReadonlySet<Permission>
}

/** What the audit log says of a request. */
export type RequestSource = {
  /** IP address; undefined: unknown. */
  address: string | undefined
  userAgent: string | undefined
  /** The header `X-Request-ID`, when the request sent one. */
  correlationId: string | undefined
}

/** What happens without a request, or where the request is not at hand. */
export const unknownSource: RequestSource = { address: undefined, userAgent: undefined, correlationId: undefined }

/** `name`: the display name, or else the e-mail. */
export type Person = { kind: 'person'; userId: number; email: string; name: string }

export type ServiceAccountActor = {
  kind: 'service_account'
  serviceAccountId: number
  organizationId: number
  role: ServiceAccountRole
  name: string
}

/** Somebody whom an identity provider vouches for and who has no account yet. */
export type Newcomer = { kind: 'newcomer'; email: string; issuer: string; subject: string }

export type Credential =
  | { kind: 'api_key'; id: number; name: string }
  | Session
  | FederatedSession
  /** The ID token of an identity provider, sent as it is. */
  | { kind: 'id_token'; id: string; issuer: string; createdAt: Date; isMfa: boolean | undefined }

export type Session = {
  kind: 'session'
  id: string
  /** Who vouched for the person at sign-in. */
  issuer: string
  createdAt: Date
  /** Whether a second factor was used; undefined when the identity provider did not say. */
  isMfa: boolean | undefined
}

/** A CI job that signed in through a trust rule. */
export type FederatedSession = {
  kind: 'federated'
  id: string
  trustRuleId: number
  repository: string
  workflowRef: string
  runId: string | undefined
  ref: string | undefined
}

/** The account behind a request about the caller's own account. */
export function requirePerson(actor: Actor): Person {
  if (actor.kind !== 'person') throw new AppError('not_found', 'No account belongs to this credential.')
  return actor
}
