import {
  type Plan,
  type PlanDescription,
  type PlanFeature,
  planFeatures,
  type ServiceAccountRole,
} from '@godwit/contract'

export function includesFeature(plan: Plan, feature: PlanFeature): boolean {
  return planFeatures[plan].has(feature)
}

/** What a plan must include so that somebody can be given a role; undefined: every plan does. */
export function findFeatureOfRole(role: ServiceAccountRole): PlanFeature | undefined {
  if (role === 'appManager' || role === 'viewer') return 'all_roles'
  return role === 'auditor' ? 'audit_log' : undefined
}

export function describePlan(plan: Plan): PlanDescription {
  return { plan, features: [...planFeatures[plan]] }
}
