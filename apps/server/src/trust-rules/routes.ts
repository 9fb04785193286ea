import type { TrustRule } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import type { Selectable } from 'kysely'
import type { Database } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { bindRoute } from '../http/bind.ts'
import { createTrustRule, listTrustRulesOfAccount, removeTrustRule } from './actions.ts'

export function registerTrustRuleRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listTrustRules', async ({ params }) => {
    const rows = await listTrustRulesOfAccount(deps, params)
    return { trust_rules: rows.map(toTrustRule) }
  })
  bindRoute(app, deps, 'createTrustRule', async ({ actor, params, body }) => {
    const { issuer, repository, workflow, environment = null, ref_pattern = null } = body
    const condition = { issuer, repository, workflow, environment, ref_pattern }
    return toTrustRule(await createTrustRule(deps, actor, { ...params, condition }))
  })
  bindRoute(app, deps, 'deleteTrustRule', async ({ actor, params }) => {
    await removeTrustRule(deps, actor, params)
  })
}

function toTrustRule(row: Selectable<Database['trust_rules']>): TrustRule {
  return {
    id: row.id,
    service_account_id: row.service_account_id,
    issuer: row.issuer,
    repository: row.repository,
    workflow: row.workflow,
    environment: row.environment ?? undefined,
    ref_pattern: row.ref_pattern ?? undefined,
    created_at: row.created_at.toISOString(),
  }
}
