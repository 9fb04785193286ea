import { apiKeyPermissions } from '@godwit/contract'
import type { FastifyRequest } from 'fastify'
import type { Actor } from '../http/actor.ts'
import { readSource } from '../http/request-source.ts'
import type { BrowserSession } from './browser-session.ts'

/** Who answers a page, as actions and the audit log know them. */
export function toActor(session: BrowserSession, request: FastifyRequest): Actor {
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
    source: readSource(request),
  }
}
