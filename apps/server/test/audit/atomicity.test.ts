import { type AuditEventName, auditEventNames } from '@godwit/contract'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addAllowedDomain, removeAllowedDomain } from '../../src/organizations/allowed-domains.ts'
import { createMember, createTeam, type Team } from '../organizations/teams.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { type CiProvider, startCiProvider } from '../trust-rules/ci-provider.ts'
import { createTrustedAccount, signInJob } from './machines.ts'

/**
 * No change without its event, no event without its change, for everything that an organization's log records beside its
 * apps; `app-events.test.ts` does the same for those.
 */
let service: TestService
let ci: CiProvider

beforeAll(async () => {
  ci = await startCiProvider({ audience: () => service.baseUrl, now: () => new Date() })
  service = await createTestService({ config: { ciIssuers: [ci.issuer] } })
})
afterAll(async () => {
  await service.stop()
  await ci.stop()
})

type Act = () => Promise<unknown>
type Scene = { team: Team; params: { organizationId: number }; guest: TestAccount }

/** A request for each event. What it needs is made first, and leaves its own events. */
const requests: Partial<Record<AuditEventName, (scene: Scene) => Act | Promise<Act>>> = {
  'organization.create':
    ({ guest }) =>
    () =>
      guest.api.createOrganization({ body: { name: 'New' } }),
  'organization.rename':
    ({ team, params }) =>
    () =>
      team.owner.api.updateOrganization({ params, body: { name: 'Other' } }),
  'organization.delete':
    ({ team, params }) =>
    () =>
      team.owner.api.deleteOrganization({ params }),
  'organization.ownership_transfer': async ({ team, params }) => {
    const { userId } = await createMember(service, team, 'admin')
    return () => team.owner.api.transferOwnership({ params, body: { user_id: userId } })
  },
  'org_allowed_domain.add':
    ({ params }) =>
    () =>
      addAllowedDomain(service.deps, { ...params, domain: 'acme.example' }),
  'org_allowed_domain.remove': async ({ params }) => {
    const domain = { ...params, domain: 'acme.example' }
    await addAllowedDomain(service.deps, domain)
    return () => removeAllowedDomain(service.deps, domain)
  },
  'org_member.add':
    ({ team, params, guest }) =>
    () =>
      team.owner.api.addOrganizationUser({ params, body: { email: guest.email, role: 'viewer' } }),
  'org_member.role_update': async ({ team, params }) => {
    const { userId } = await createMember(service, team, 'viewer')
    const path = { ...params, userId }
    return () => team.owner.api.updateOrganizationUser({ params: path, body: { role: 'developer' } })
  },
  'org_member.remove': async ({ team, params }) => {
    const { userId } = await createMember(service, team, 'viewer')
    return () => team.owner.api.removeOrganizationUser({ params: { ...params, userId } })
  },
  'invitation.create': (scene) => () => invite(scene),
  'invitation.revoke': async (scene) => {
    const { id: invitationId } = await invite(scene)
    return () => scene.team.owner.api.revokeInvitation({ params: { ...scene.params, invitationId } })
  },
  'invitation.accept': async (scene) => {
    const { id: invitationId } = await invite(scene)
    return () => scene.guest.api.acceptInvitation({ params: { invitationId } })
  },
  'invitation.decline': async (scene) => {
    const { id: invitationId } = await invite(scene)
    return () => scene.guest.api.declineInvitation({ params: { invitationId } })
  },
  'service_account.create':
    ({ team, params }) =>
    () =>
      team.owner.api.createServiceAccount({ params, body: { name: 'CI' } }),
  'service_account.role_update': async (scene) => {
    const path = await createMachine(scene)
    return () => scene.team.owner.api.updateServiceAccount({ params: path, body: { role: 'auditor' } })
  },
  'service_account.delete': async (scene) => {
    const path = await createMachine(scene)
    return () => scene.team.owner.api.deleteServiceAccount({ params: path })
  },
  'service_account_key.create': async (scene) => {
    const path = await createMachine(scene)
    return () => scene.team.owner.api.createServiceAccountKey({ params: path, body: { name: 'key' } })
  },
  'service_account_key.revoke': async (scene) => {
    const path = await createMachine(scene)
    const { id: keyId } = await scene.team.owner.api.createServiceAccountKey({ params: path, body: { name: 'key' } })
    return () => scene.team.owner.api.revokeServiceAccountKey({ params: { ...path, keyId } })
  },
  'service_account_trust_rule.create': async (scene) => {
    const path = await createMachine(scene)
    const body = { issuer: ci.issuer, repository: 'acme/other', workflow: 'release.yml' }
    return () => scene.team.owner.api.createTrustRule({ params: path, body })
  },
  'service_account_trust_rule.delete': async ({ team, params }) => {
    const { id: serviceAccountId, ruleId } = await createTrustedAccount(service, { team, ci })
    return () => team.owner.api.deleteTrustRule({ params: { ...params, serviceAccountId, ruleId } })
  },
  'service_account.sign_in': async ({ team }) => {
    await createTrustedAccount(service, { team, ci })
    const job = await ci.buildToken()
    return async () => {
      const { status } = await signInJob(service, job)
      if (status !== 200) throw new Error(`answered ${status}`)
    }
  },
}

const invite = ({ team, params, guest }: Scene) =>
  team.owner.api.createInvitation({ params, body: { email: guest.email, role: 'viewer' } })

async function createMachine({ team, params }: Scene) {
  const { id } = await team.owner.api.createServiceAccount({ params, body: { name: 'CI' } })
  return { ...params, serviceAccountId: id }
}

const tables = [
  'organizations',
  'organization_members',
  'organization_allowed_domains',
  'invitations',
  'service_accounts',
  'trust_rules',
  'federated_sessions',
  'apps',
]

/** What organizations are, and their keys apart from when they were used. */
async function readTables(): Promise<string[]> {
  const keys = sql`(select id, name, revoked_at, service_account_id from api_keys)`
  const sources = [...tables.map((table) => sql.table(table)), keys]
  const rows: string[] = []
  for (const [index, source] of sources.entries()) {
    const found = await sql`select * from ${source} content`.execute(service.deps.db)
    rows.push(...found.rows.map((row) => `${index} ${JSON.stringify(row)}`))
  }
  return rows.toSorted()
}

async function countEvents(): Promise<Record<string, number>> {
  const { rows } = await sql<{ operation: string; count: number }>`
    select operation, count(*) as count from (
      select operation from audit_events union all select operation from audit_outbox
    ) event group by operation`.execute(service.deps.db)
  return Object.fromEntries(rows.map(({ operation, count }) => [operation, count]))
}

async function prepare(operation: AuditEventName): Promise<Act> {
  // A rule of an earlier scene would let in the job of this one.
  await service.deps.db.deleteFrom('service_accounts').execute()
  const team = await createTeam(service)
  const guest = await service.createAccount()
  const request = requests[operation]
  if (request === undefined) throw new Error(`no request for ${operation}`)
  return await request({ team, params: { organizationId: team.organizationId }, guest })
}

/** While the trigger is there, the request is refused and nothing is left of it; then it goes through. */
async function expectAllOrNothing(operation: AuditEventName, trigger: string): Promise<void> {
  const act = await prepare(operation)
  const [before, events] = [await readTables(), await countEvents()]
  const { db } = service.deps
  await sql`
    create function refuse() returns trigger language plpgsql as $$ begin raise exception 'disk full'; end $$`.execute(
    db,
  )
  await sql.raw(`${trigger} for each row execute function refuse()`).execute(db)
  try {
    const refusal = await act().then(
      () => undefined,
      (error: Error & { status?: number }) => error,
    )
    expect(refusal).toBeInstanceOf(Error)
    if (refusal?.status !== undefined) expect([500, 503]).toContain(refusal.status)
  } finally {
    await sql`drop function refuse cascade`.execute(db)
  }
  expect(await readTables()).toEqual(before)
  expect(await countEvents()).toEqual(events)
  await act()
  expect(await readTables()).not.toEqual(before)
  expect((await countEvents())[operation]).toBe((events[operation] ?? 0) + 1)
}

const operations = Object.keys(requests) as AuditEventName[]

describe.each(operations)('%s', (operation) => {
  it('does not change anything when its event cannot be written', async () => {
    await expectAllOrNothing(operation, 'create trigger refuse before insert on audit_outbox')
  })

  it('leaves neither the change nor the event when the commit fails', async () => {
    const deferred = 'create constraint trigger refuse after insert on audit_outbox deferrable initially deferred'
    await expectAllOrNothing(operation, deferred)
  })
})

describe('the operations', () => {
  it('are all walked, here or with the apps', () => {
    const ofApps = /^(app|app_collaborator|channel|release|release_artifact|patch|patch_artifact)\./
    expect(auditEventNames.filter((name) => !ofApps.test(name) && !operations.includes(name))).toEqual([])
  })
})
