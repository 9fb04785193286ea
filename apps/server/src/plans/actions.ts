import type { Plan, PlanFeature, ServiceAccountRole } from '@godwit/contract'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { findOrganizationPlan } from './queries.ts'
import { findFeatureOfRole, includesFeature } from './rules.ts'

export function requireFeature(plan: Plan, feature: PlanFeature): void {
  if (!includesFeature(plan, feature)) throw new AppError('plan_required', `The plan ${plan} does not have ${feature}.`)
}

/** What an organization has already stays when its plan changes; this is asked only where something is added. */
export async function requireOrganizationFeature(
  deps: Deps,
  db: Db,
  input: { organizationId: number; feature: PlanFeature },
): Promise<void> {
  requireFeature(await getOrganizationPlan(deps, db, input), input.feature)
}

/** Asked wherever a member or a service account is given a role. */
export async function requireRoleInPlan(
  deps: Deps,
  db: Db,
  input: { organizationId: number; role: ServiceAccountRole },
): Promise<void> {
  const feature = findFeatureOfRole(input.role)
  if (feature === undefined) return
  const plan = await getOrganizationPlan(deps, db, input)
  if (includesFeature(plan, feature)) return
  throw new AppError('plan_required', `role: the plan ${plan} does not have the role ${input.role}`)
}

export async function getOrganizationPlan(deps: Deps, db: Db, input: { organizationId: number }): Promise<Plan> {
  const { defaultPlan } = deps.config
  const plan = await findOrganizationPlan(db, { organizationId: input.organizationId, defaultPlan })
  if (plan === undefined) throw new AppError('not_found')
  return plan
}
