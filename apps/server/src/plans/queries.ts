import type { Plan } from '@godwit/contract'
import type { Db } from '../db/connection.ts'

/** The plan of an organization is its owner's. undefined when there is no such organization. */
export async function findOrganizationPlan(
  db: Db,
  input: { organizationId: number; defaultPlan: Plan },
): Promise<Plan | undefined> {
  const row = await db
    .selectFrom('organization_members')
    .innerJoin('users', 'users.id', 'organization_members.user_id')
    .select('users.plan')
    .where('organization_members.organization_id', '=', input.organizationId)
    .where('organization_members.role', '=', 'owner')
    .executeTakeFirst()
  return row === undefined ? undefined : (row.plan ?? input.defaultPlan)
}

export async function findUserPlan(db: Db, input: { userId: number; defaultPlan: Plan }): Promise<Plan | undefined> {
  const row = await db.selectFrom('users').select('plan').where('id', '=', input.userId).executeTakeFirst()
  return row === undefined ? undefined : (row.plan ?? input.defaultPlan)
}
