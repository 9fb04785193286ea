import { recordEvent } from '../audit/record-event.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
import { requireOrganizationFeature } from '../plans/actions.ts'
import { getServiceAccount, lockManagedAccount, type ServiceAccountPath } from '../service-accounts/actions.ts'
import { listServiceAccountResources } from '../service-accounts/rules.ts'
import { deleteTrustRule, findEqualTrustRule, insertTrustRule, listTrustRules } from './queries.ts'
import { describeCondition, type TrustCondition } from './rules.ts'

export async function listTrustRulesOfAccount(deps: Deps, input: ServiceAccountPath) {
  const { id } = await getServiceAccount(deps.db, input)
  return await listTrustRules(deps.db, { serviceAccountId: id })
}

/** A rule that says the same is answered instead of made twice. Rules stay when the plan changes. */
export async function createTrustRule(
  deps: Deps,
  actor: Actor,
  input: ServiceAccountPath & { condition: TrustCondition },
) {
  const { organizationId, serviceAccountId, condition } = input
  if (!deps.config.ciIssuers.includes(condition.issuer)) {
    throw new AppError('invalid_request', `issuer: must be one of ${deps.config.ciIssuers.join(', ')}`)
  }
  return await deps.db.transaction().execute(async (trx) => {
    await lockManagedAccount(deps, trx, actor, input)
    await requireOrganizationFeature(deps, trx, { organizationId, feature: 'trust_rules' })
    const existing = await findEqualTrustRule(trx, { serviceAccountId, condition })
    if (existing !== undefined) return existing
    const rule = await insertTrustRule(trx, { serviceAccountId, condition, createdAt: deps.clock() })
    await recordEvent(deps, trx, actor, {
      operation: 'service_account_trust_rule.create',
      organizationId,
      resources: [{ type: 'service_account_trust_rule', uid: rule.id }, ...listServiceAccountResources(input)],
      details: describeCondition(condition),
    })
    return rule
  })
}

export async function removeTrustRule(
  deps: Deps,
  actor: Actor,
  input: ServiceAccountPath & { ruleId: number },
): Promise<void> {
  const { serviceAccountId, ruleId } = input
  await deps.db.transaction().execute(async (trx) => {
    await lockManagedAccount(deps, trx, actor, input)
    const condition = await deleteTrustRule(trx, { id: ruleId, serviceAccountId })
    if (condition === undefined) throw new AppError('not_found')
    await recordEvent(deps, trx, actor, {
      operation: 'service_account_trust_rule.delete',
      organizationId: input.organizationId,
      resources: [{ type: 'service_account_trust_rule', uid: ruleId }, ...listServiceAccountResources(input)],
      details: describeCondition(condition),
    })
  })
}
