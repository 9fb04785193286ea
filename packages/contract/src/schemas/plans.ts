import { z } from 'zod'
import { Plan } from './enums.ts'
import { Int64, Timestamp } from './primitives.ts'

export const PlanFeature = z
  .enum(['team_organizations', 'collaborators', 'all_roles', 'trust_rules', 'audit_log'])
  .meta({ id: 'PlanFeature' })
export type PlanFeature = z.infer<typeof PlanFeature>

const team: PlanFeature[] = ['team_organizations', 'collaborators']
const business: PlanFeature[] = [...team, 'all_roles', 'trust_rules']

/**
 * What a plan includes. Without `all_roles` members and service accounts can be `admin` and `developer` only; the role
 * `auditor` comes with the audit log. What exists when a plan changes stays.
 */
export const planFeatures: Record<Plan, ReadonlySet<PlanFeature>> = {
  free: new Set(),
  pro: new Set(team),
  business: new Set(business),
  enterprise: new Set([...business, 'audit_log']),
}

export const PlanDescription = z
  .object({ plan: Plan, features: z.array(PlanFeature) })
  .meta({ id: 'PlanDescription', description: 'A plan and what it includes.' })
export type PlanDescription = z.infer<typeof PlanDescription>

export const OrganizationUsage = z
  .object({
    apps: z.array(
      z.object({
        id: z.string(),
        name: z.string(),
        patch_install_count: Int64.meta({ description: 'Patch installs that devices reported within the period.' }),
      }),
    ),
    patch_install_count: Int64.meta({ description: 'The sum.' }),
    period_start: Timestamp.meta({ description: 'First instant of the current month, UTC.' }),
    period_end: Timestamp.meta({ description: 'First instant of the next month, UTC; not part of the period.' }),
  })
  .meta({ id: 'OrganizationUsage' })
export type OrganizationUsage = z.infer<typeof OrganizationUsage>
