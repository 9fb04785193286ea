import type { InvitedRole, Plan, Role, ServiceAccountRole } from '@godwit/contract'
import type { Client } from '@godwit/sdk'
import { sql } from 'kysely'
import { createApiKey } from '../../src/api-keys/actions.ts'
import type { TestAccount, TestService } from '../support/test-service.ts'

export type Team = { owner: TestAccount; organizationId: number }

export async function createTeam(service: TestService, owner?: TestAccount): Promise<Team> {
  const founder = owner ?? (await service.createAccount())
  const { id } = await founder.api.createOrganization({ body: { name: 'Acme' } })
  return { owner: founder, organizationId: id }
}

export async function createMember(service: TestService, team: Team, role: InvitedRole): Promise<TestAccount> {
  const account = await service.createAccount()
  const params = { organizationId: team.organizationId }
  await team.owner.api.addOrganizationUser({ params, body: { email: account.email, role } })
  return account
}

export async function createServiceAccountClient(
  service: TestService,
  team: Team,
  role: ServiceAccountRole,
): Promise<{ id: number; api: Client }> {
  const { id } = await service.deps.db
    .insertInto('service_accounts')
    .values({ organization_id: team.organizationId, name: 'CI', role })
    .returning('id')
    .executeTakeFirstOrThrow()
  const key = { holder: { serviceAccountId: id }, name: 'CI', permission: 'full', expiresAt: null } as const
  return { id, api: service.client((await createApiKey(service.deps.db, key)).key) }
}

export async function setPlan(service: TestService, account: TestAccount, plan: Plan): Promise<void> {
  await service.deps.db.updateTable('users').set({ plan }).where('id', '=', account.userId).execute()
}

export async function setUnverified(service: TestService, account: TestAccount): Promise<void> {
  await service.deps.db.updateTable('users').set({ email_verified_at: null }).where('id', '=', account.userId).execute()
}

/** The role of each member, by account. */
export async function listRoles(service: TestService, organizationId: number): Promise<Record<number, Role>> {
  const rows = await service.deps.db
    .selectFrom('organization_members')
    .select(['user_id', 'role'])
    .where('organization_id', '=', organizationId)
    .execute()
  return Object.fromEntries(rows.map(({ user_id, role }) => [user_id, role]))
}

/** What became of each request: its status when it was refused, `done` when it was not. */
export async function settle(requests: Promise<unknown>[]): Promise<(number | 'done')[]> {
  const answers = await Promise.allSettled(requests)
  return answers.map((answer) => (answer.status === 'fulfilled' ? 'done' : (answer.reason.status ?? answer.reason)))
}

/** Until a statement on the database of the service waits for a lock. */
export async function untilSomebodyWaits(service: TestService): Promise<void> {
  for (;;) {
    const { rows } = await sql<{ waiting: boolean }>`
      select exists (
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      ) as waiting`.execute(service.deps.db)
    if (rows[0]?.waiting) return
  }
}
