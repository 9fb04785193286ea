import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { requireOrganizationFeature } from '../plans/actions.ts'
import { getLockedServiceAccount, getServiceAccount, type ServiceAccountPath } from '../service-accounts/actions.ts'
import { deleteTrustRule, findEqualTrustRule, insertTrustRule, listTrustRules } from './queries.ts'
import type { TrustCondition } from './rules.ts'

export async function listTrustRulesOfAccount(deps: Deps, input: ServiceAccountPath) {
  const { id } = await getServiceAccount(deps.db, input)
  return await listTrustRules(deps.db, { serviceAccountId: id })
}

/** A rule that says the same is answered instead of made twice. Rules stay when the plan changes. */
export async function createTrustRule(deps: Deps, input: ServiceAccountPath & { condition: TrustCondition }) {
  const { organizationId, serviceAccountId, condition } = input
  if (!deps.config.ciIssuers.includes(condition.issuer)) {
    throw new AppError('invalid_request', `issuer: must be one of ${deps.config.ciIssuers.join(', ')}`)
  }
  return await deps.db.transaction().execute(async (trx) => {
    await getLockedServiceAccount(trx, input)
    await requireOrganizationFeature(deps, trx, { organizationId, feature: 'trust_rules' })
    const existing = await findEqualTrustRule(trx, { serviceAccountId, condition })
    return existing ?? (await insertTrustRule(trx, { serviceAccountId, condition, createdAt: deps.clock() }))
  })
}

export async function removeTrustRule(deps: Deps, input: ServiceAccountPath & { ruleId: number }): Promise<void> {
  const { serviceAccountId, ruleId } = input
  await deps.db.transaction().execute(async (trx) => {
    await getLockedServiceAccount(trx, input)
    if (!(await deleteTrustRule(trx, { id: ruleId, serviceAccountId }))) throw new AppError('not_found')
  })
}
