import { apiKeyPermissions } from '@godwit/contract'
import type { Caller } from '../http/actor.ts'
import type { findLiveSession } from './queries.ts'

type LiveSession = NonNullable<Awaited<ReturnType<typeof findLiveSession>>>

/** The person whose session it is, whether a token or a cookie named it. */
export function toCaller(session: LiveSession): Caller {
  return {
    kind: 'person',
    userId: session.user_id,
    email: session.email,
    name: session.display_name ?? session.email,
    credential: {
      kind: 'session',
      id: session.id,
      issuer: session.issuer,
      createdAt: session.created_at,
      isMfa: session.is_mfa ?? undefined,
    },
    allows: apiKeyPermissions.full,
  }
}
