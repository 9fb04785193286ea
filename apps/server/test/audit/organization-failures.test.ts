import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sealEvents } from '../../src/audit/seal-events.ts'
import { addAllowedDomain, removeAllowedDomain } from '../../src/organizations/allowed-domains.ts'
import { createMember, createTeam, type Team } from '../organizations/teams.ts'
import { password } from '../sign-in/accounts.ts'
import { createBrowser } from '../support/browser.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { type CiProvider, startCiProvider } from '../trust-rules/ci-provider.ts'
import { createTrustedAccount, signInJob } from './machines.ts'

let service: TestService
let ci: CiProvider
let team: Team
let owner: TestAccount
let params: { organizationId: number }

beforeAll(async () => {
  ci = await startCiProvider({ audience: () => service.baseUrl, now: () => new Date() })
  service = await createTestService({ config: { ciIssuers: [ci.issuer] } })
})
afterAll(async () => {
  await service.stop()
  await ci.stop()
})
beforeEach(async () => {
  // The rules of one test must not let in the jobs of the next.
  await service.deps.db.deleteFrom('service_accounts').execute()
  team = await createTeam(service)
  owner = team.owner
  params = { organizationId: team.organizationId }
})

const changingTables = [
  'organizations',
  'organization_members',
  'organization_allowed_domains',
  'app_collaborators',
  'invitations',
  'service_accounts',
  'api_keys',
  'trust_rules',
  'federated_sessions',
  'users',
  'sessions',
]

/** All that could have changed, and the events. */
async function snapshot() {
  const lists: Record<string, unknown[]> = {}
  for (const table of [...changingTables, 'sessions', 'audit_outbox', 'audit_events']) {
    const { rows } = await sql<{ row: string }>`
      select (to_jsonb(t) - 'last_used_at')::text as row from ${sql.table(table)} t`.execute(service.deps.db)
    lists[table] = rows.map(({ row }) => row).toSorted()
  }
  return lists
}

const failure = 'it fails here'

/** From then on no event can be stored, or every transaction that changes something fails when it commits. */
async function breakDatabase(where: 'the event' | 'the commit'): Promise<void> {
  const run = async (statement: string) => void (await sql.raw(statement).execute(service.deps.db))
  await run(`create or replace function fail_here() returns trigger language plpgsql
    as $$ begin raise exception '${failure}'; end $$`)
  if (where === 'the event') {
    return await run('create trigger fail_here before insert on audit_outbox execute function fail_here()')
  }
  for (const table of changingTables) {
    // Not what says when a key was used last, which is another transaction.
    const update = table === 'api_keys' ? 'update of revoked_at' : 'update'
    await run(`create constraint trigger fail_here after insert or ${update} or delete on ${table}
      deferrable initially deferred for each row execute function fail_here()`)
  }
}

async function repairDatabase(): Promise<void> {
  for (const table of ['audit_outbox', ...changingTables]) {
    await sql`drop trigger if exists fail_here on ${sql.table(table)}`.execute(service.deps.db)
  }
}

describe('a change and its event', () => {
  it.each(['the event', 'the commit'] as const)('leave nothing of either when %s fails', async (where) => {
    const appId = await createTestApp({ ...owner, organizationId: team.organizationId })
    const developer = await createMember(service, team, 'developer')
    const guest = await service.createAccount()
    await guest.api.getCurrentUser()
    const { id: invitationId } = await owner.api.createInvitation({
      params,
      body: { email: guest.email, role: 'viewer' },
    })
    const toApp = await owner.api.createInvitation({
      params,
      body: { email: guest.email, role: 'developer', app_id: appId },
    })
    const joining = `new-${appId}@example.com`
    const { url } = await owner.api.createInvitation({ params, body: { email: joining, role: 'viewer' } })
    const { id: serviceAccountId, ruleId } = await createTrustedAccount(service, { team, ci })
    const path = { ...params, serviceAccountId }
    const { id: keyId } = await owner.api.createServiceAccountKey({ params: path, body: { name: 'deploy' } })
    const userPath = { ...params, userId: developer.userId }
    await addAllowedDomain(service.deps, { ...params, domain: 'example.com' })
    const changes: Record<string, () => Promise<unknown>> = {
      'organization.create': () => owner.api.createOrganization({ body: { name: 'Other' } }),
      'organization.rename': () => owner.api.updateOrganization({ params, body: { name: 'Birds' } }),
      'organization.delete': () => owner.api.deleteOrganization({ params }),
      'organization.ownership_transfer': () =>
        owner.api.transferOwnership({ params, body: { user_id: developer.userId } }),
      'org_allowed_domain.add': () => addAllowedDomain(service.deps, { ...params, domain: 'other.example' }),
      'org_allowed_domain.remove': () => removeAllowedDomain(service.deps, { ...params, domain: 'example.com' }),
      'org_member.add': () => owner.api.addOrganizationUser({ params, body: { email: guest.email, role: 'viewer' } }),
      'org_member.role_update': () => owner.api.updateOrganizationUser({ params: userPath, body: { role: 'admin' } }),
      'org_member.remove': () => owner.api.removeOrganizationUser({ params: userPath }),
      'invitation.create': () =>
        owner.api.createInvitation({ params, body: { email: 'x@example.com', role: 'viewer' } }),
      'invitation.revoke': () => owner.api.revokeInvitation({ params: { ...params, invitationId } }),
      'invitation.accept': () => guest.api.acceptInvitation({ params: { invitationId } }),
      'invitation.accept to an app': () => guest.api.acceptInvitation({ params: { invitationId: toApp.id } }),
      'invitation.accept with a new account': async () => {
        const page = new URL(url ?? '').pathname
        const form = { display_name: '', new_password: password }
        const answer = await createBrowser(service.baseUrl).submit(page, `${page}/join`, form)
        throw { status: answer.status }
      },
      'invitation.decline': () => guest.api.declineInvitation({ params: { invitationId } }),
      'service_account.create': () => owner.api.createServiceAccount({ params, body: { name: 'CI' } }),
      'service_account.role_update': () => owner.api.updateServiceAccount({ params: path, body: { role: 'viewer' } }),
      'service_account.delete': () => owner.api.deleteServiceAccount({ params: path }),
      'service_account_key.create': () => owner.api.createServiceAccountKey({ params: path, body: { name: 'k' } }),
      'service_account_key.revoke': () => owner.api.revokeServiceAccountKey({ params: { ...path, keyId } }),
      'service_account_trust_rule.create': () =>
        owner.api.createTrustRule({ params: path, body: { issuer: ci.issuer, repository: 'a/b', workflow: 'c.yml' } }),
      'service_account_trust_rule.delete': () => owner.api.deleteTrustRule({ params: { ...path, ruleId } }),
      'service_account.sign_in': async () => {
        throw await signInJob(service, await ci.buildToken())
      },
    }
    await sealEvents(service.deps.db)
    const before = await snapshot()
    await breakDatabase(where)
    try {
      for (const [operation, change] of Object.entries(changes)) {
        const refusal = await change().then(
          () => 'nothing',
          (error: { status?: number; message?: string }) => error.status ?? error.message,
        )
        expect([500, failure], operation).toContain(refusal)
        expect(await snapshot(), operation).toEqual(before)
      }
    } finally {
      await repairDatabase()
    }
  })
})
