import { serviceAccountRolePermissions } from '@godwit/contract'
import type { Deps } from '../deps.ts'
import type { Caller } from '../http/actor.ts'
import type { Refusal } from '../http/authenticate.ts'
import { findLiveFederatedSession } from '../trust-rules/queries.ts'
import { toCaller } from './caller-of-session.ts'
import { findLiveSession } from './queries.ts'

/** Three parts, and no API key: a JWT, whoever issued it. */
export function isJwt(token: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token)
}

/** Looks its session up on every request: a token of a revoked session fails at once, not only when it has ended. */
export async function findCallerByAccessToken(deps: Deps, token: string): Promise<Caller | Refusal> {
  const verified = await deps.accessTokens.verify(token)
  if ('refusal' in verified) return verified
  const { claims } = verified
  const now = deps.clock()
  if (claims.kind === 'federated') return await findFederatedCaller(deps, claims.sid, now)
  const session = await findLiveSession(deps.db, { id: claims.sid, now })
  if (session === undefined || String(session.user_id) !== claims.sub) return { refusal: 'its session has ended' }
  return toCaller(session)
}

async function findFederatedCaller(deps: Deps, id: string, now: Date): Promise<Caller | Refusal> {
  const session = await findLiveFederatedSession(deps.db, { id, now })
  if (session === undefined) return { refusal: 'its session has ended' }
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
