import { apiKeyPermissions, serviceAccountRolePermissions } from '@godwit/contract'
import type { Deps } from '../deps.ts'
import type { Actor } from '../http/actor.ts'
import { findLiveFederatedSession } from '../trust-rules/queries.ts'
import { findLiveSession } from './queries.ts'

/** Three parts, and no API key: a JWT, whoever issued it. */
export function isJwt(token: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)
}

/** Looks its session up on every request: a token of a revoked session fails at once, not only when it has ended. */
export async function findActorByAccessToken(deps: Deps, token: string): Promise<Actor | undefined> {
  const verified = await deps.accessTokens.verify(token)
  if ('refusal' in verified) {
    deps.log.warn({ reason: verified.refusal }, 'an access token was refused')
    return undefined
  }
  const { claims } = verified
  const now = deps.clock()
  if (claims.kind === 'federated') return await findFederatedActor(deps, claims.sid, now)
  const session = await findLiveSession(deps.db, { id: claims.sid, now })
  if (session === undefined || String(session.user_id) !== claims.sub) return undefined
  return {
    kind: 'person',
    userId: session.user_id,
    email: session.email,
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

async function findFederatedActor(deps: Deps, id: string, now: Date): Promise<Actor | undefined> {
  const session = await findLiveFederatedSession(deps.db, { id, now })
  if (session === undefined) return undefined
  return {
    kind: 'service_account',
    serviceAccountId: session.service_account_id,
    organizationId: session.organization_id,
    role: session.role,
    name: session.name,
    credential: {
      kind: 'federated',
      id: session.id,
      trustRuleId: session.trust_rule_id,
      repository: session.repository,
      workflowRef: session.workflow_ref,
      runId: session.run_id ?? undefined,
      ref: session.ref ?? undefined,
    },
    allows: serviceAccountRolePermissions[session.role],
  }
}
