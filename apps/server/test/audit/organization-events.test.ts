import type { AuditEvent } from '@godwit/contract'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { sealEvents } from '../../src/audit/seal-events.ts'
import { addAllowedDomain, removeAllowedDomain } from '../../src/organizations/allowed-domains.ts'
import { startClientSession } from '../../src/sessions/actions.ts'
import {
  createMember,
  createServiceAccountClient,
  createTeam,
  setPlan,
  setUnverified,
  type Team,
} from '../organizations/teams.ts'
import { createSignedInMember, password } from '../sign-in/accounts.ts'
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

/** All of an organization's log that somebody can read, oldest first. */
async function listEvents(organizationId = team.organizationId, reader = owner): Promise<AuditEvent[]> {
  const { data } = await reader.api.listAuditLogs({ params: { organizationId }, query: { per_page: '100' } })
  return data.toReversed()
}

/** The same from the database, for organizations that nobody can read any more. */
async function listStoredEvents(organizationId: number): Promise<AuditEvent[]> {
  await sealEvents(service.deps.db)
  const rows = await service.deps.db
    .selectFrom('audit_events')
    .select('event')
    .where('organization_id', '=', organizationId)
    .orderBy('seq')
    .execute()
  return rows.map(({ event }) => JSON.parse(event) as AuditEvent)
}

/** What a request adds to the log of the team; refused ones are expected to be. */
async function record(act: () => Promise<unknown>): Promise<AuditEvent[]> {
  const before = await listStoredEvents(team.organizationId)
  await act()
  return (await listStoredEvents(team.organizationId)).slice(before.length)
}

async function recordRefused(act: () => Promise<unknown>, status: number): Promise<AuditEvent[]> {
  return await record(async () => await expect(act()).rejects.toMatchObject({ status }))
}

/** What distinguishes an event from others of the same actor. */
function summarize({ api, resources, unmapped }: AuditEvent) {
  const { chain_seq, previous_hash, ...rest } = unmapped
  return { operation: api.operation, resources: resources.map(({ type, uid }) => `${type} ${uid}`), unmapped: rest }
}

const byKey = { actor_source: 'api_key' }
const inTeam = () => `organization ${team.organizationId}`
const member = (account: { userId: number }) => [`user ${account.userId}`, inTeam()]

describe('organizations', () => {
  it('begin their log with organization.create, personal ones with nothing', async () => {
    expect((await listEvents()).map(summarize)).toEqual([
      { operation: 'organization.create', resources: [inTeam()], unmapped: { ...byKey, name: 'Acme' } },
    ])
    expect(await listEvents(owner.organizationId)).toEqual([])
  })

  it('record organization.rename with both names, and nothing when the name stays', async () => {
    const rename = () => owner.api.updateOrganization({ params, body: { name: 'Birds' } })
    expect((await record(rename)).map(summarize)).toEqual([
      {
        operation: 'organization.rename',
        resources: [inTeam()],
        unmapped: { ...byKey, name: 'Birds', previous_name: 'Acme' },
      },
    ])
    expect(await record(rename)).toEqual([])
    const { api } = await createMember(service, team, 'developer')
    expect(await recordRefused(() => api.updateOrganization({ params, body: { name: 'X' } }), 403)).toEqual([])
  })

  it('record organization.ownership_transfer once, and nothing when the owner stays the owner', async () => {
    const next = await createMember(service, team, 'viewer')
    const transferTo = (from: TestAccount, userId: number) => () =>
      from.api.transferOwnership({ params, body: { user_id: userId } })
    expect((await record(transferTo(owner, next.userId))).map(summarize)).toEqual([
      {
        operation: 'organization.ownership_transfer',
        resources: member(next),
        unmapped: {
          ...byKey,
          email: next.email,
          previous_role: 'viewer',
          previous_owner_id: String(owner.userId),
        },
      },
    ])
    expect(await record(transferTo(next, next.userId))).toEqual([])
    const stranger = await service.createAccount()
    expect(await recordRefused(transferTo(next, stranger.userId), 404)).toEqual([])
    expect(await recordRefused(transferTo(owner, owner.userId), 403)).toEqual([])
  })

  it('record organization.delete where the deletion begins', async () => {
    const remove = () => owner.api.deleteOrganization({ params })
    expect((await record(remove)).map(summarize)).toEqual([
      { operation: 'organization.delete', resources: [inTeam()], unmapped: { ...byKey, name: 'Acme' } },
    ])
    expect(await recordRefused(remove, 404)).toEqual([])
    await expect(
      owner.api.deleteOrganization({ params: { organizationId: owner.organizationId } }),
    ).rejects.toMatchObject({ status: 409 })
    expect(await listStoredEvents(owner.organizationId)).toEqual([])
  })
})

describe('members', () => {
  it('record org_member.add, org_member.role_update and org_member.remove, each only when it changes something', async () => {
    const account = await service.createAccount()
    const add = (role: 'developer' | 'viewer') => () =>
      owner.api.addOrganizationUser({ params, body: { email: account.email.toUpperCase(), role } })
    const { email } = account
    expect((await record(add('developer'))).map(summarize)).toEqual([
      { operation: 'org_member.add', resources: member(account), unmapped: { ...byKey, email, role: 'developer' } },
    ])
    expect(await record(add('developer'))).toEqual([])
    expect(await recordRefused(add('viewer'), 409)).toEqual([])

    const path = { params: { ...params, userId: account.userId } }
    const change = () => owner.api.updateOrganizationUser({ ...path, body: { role: 'admin' } })
    expect((await record(change)).map(summarize)).toEqual([
      {
        operation: 'org_member.role_update',
        resources: member(account),
        unmapped: { ...byKey, email, role: 'admin', previous_role: 'developer' },
      },
    ])
    expect(await record(change)).toEqual([])
    const demote = () =>
      account.api.updateOrganizationUser({ params: { ...params, userId: owner.userId }, body: { role: 'viewer' } })
    expect(await recordRefused(demote, 403)).toEqual([])

    const remove = () => owner.api.removeOrganizationUser(path)
    expect((await record(remove)).map(summarize)).toEqual([
      {
        operation: 'org_member.remove',
        resources: member(account),
        unmapped: { ...byKey, email, previous_role: 'admin' },
      },
    ])
    expect(await recordRefused(remove, 404)).toEqual([])
  })

  it('record invitation.create alone when there is no account that the e-mail belongs to', async () => {
    const unverified = await service.createAccount()
    await setUnverified(service, unverified)
    for (const email of ['nobody-yet@example.com', unverified.email]) {
      const events = await record(() => owner.api.addOrganizationUser({ params, body: { email, role: 'viewer' } }))
      expect(events.map(summarize)).toEqual([
        {
          operation: 'invitation.create',
          resources: [expect.stringMatching(/^invitation \d+$/), inTeam()],
          unmapped: { ...byKey, email, role: 'viewer' },
        },
      ])
    }
  })
})

describe('invitations', () => {
  const invite = (email: string, app_id?: string) =>
    owner.api.createInvitation({ params, body: { email, role: 'developer', app_id } })

  it('record invitation.create also when they are renewed, and invitation.revoke once', async () => {
    const email = 'guest@example.com'
    let id = 0
    const create = async () => {
      id = (await invite(email)).id
    }
    for (const _ of ['new', 'renewed']) {
      expect((await record(create)).map(summarize)).toEqual([
        {
          operation: 'invitation.create',
          resources: [`invitation ${id}`, inTeam()],
          unmapped: { ...byKey, email, role: 'developer' },
        },
      ])
    }
    const revoke = () => owner.api.revokeInvitation({ params: { ...params, invitationId: id } })
    expect((await record(revoke)).map(summarize)).toEqual([
      {
        operation: 'invitation.revoke',
        resources: [`invitation ${id}`, inTeam()],
        unmapped: { ...byKey, email, role: 'developer' },
      },
    ])
    expect(await record(revoke)).toEqual([])
    expect(await recordRefused(() => invite(owner.email), 409)).toEqual([])
  })

  it('record invitation.accept and org_member.add, and nothing when they are accepted again', async () => {
    const guest = await service.createAccount()
    const { id } = await invite(guest.email)
    const accept = () => guest.api.acceptInvitation({ params: { invitationId: id } })
    const stranger = await service.createAccount()
    const acceptAsStranger = () => stranger.api.acceptInvitation({ params: { invitationId: id } })
    expect(await recordRefused(acceptAsStranger, 404)).toEqual([])
    const events = await record(accept)
    const unmapped = { ...byKey, email: guest.email, role: 'developer' }
    expect(events.map(summarize)).toEqual([
      { operation: 'invitation.accept', resources: [`invitation ${id}`, inTeam()], unmapped },
      { operation: 'org_member.add', resources: member(guest), unmapped },
    ])
    expect(events.map(({ actor }) => actor.user.uid)).toEqual([String(guest.userId), String(guest.userId)])
    expect(await record(accept)).toEqual([])
  })

  it('record no org_member.add for somebody who is a member already', async () => {
    const guest = await service.createAccount()
    const { id } = await invite(guest.email)
    const row = { organization_id: team.organizationId, user_id: guest.userId, role: 'viewer' } as const
    await service.deps.db.insertInto('organization_members').values(row).execute()
    const events = await record(() => guest.api.acceptInvitation({ params: { invitationId: id } }))
    expect(events.map(({ api }) => api.operation)).toEqual(['invitation.accept'])
  })

  it('to an app record app_collaborator.add, and all of it names the app', async () => {
    const appId = await createTestApp({ ...owner, organizationId: team.organizationId })
    const { display_name: app_name } = await service.deps.db
      .selectFrom('apps')
      .select('display_name')
      .where('id', '=', appId)
      .executeTakeFirstOrThrow()
    const guest = await service.createAccount()
    const unmapped = { ...byKey, app_id: appId, app_name, email: guest.email, role: 'developer' }
    let id = 0
    const created = await record(async () => {
      id = (await invite(guest.email, appId)).id
    })
    const resources = [`invitation ${id}`, `app ${appId}`]
    expect(created.map(summarize)).toEqual([{ operation: 'invitation.create', resources, unmapped }])
    const accepted = await record(() => guest.api.acceptInvitation({ params: { invitationId: id } }))
    expect(accepted.map(summarize)).toEqual([
      { operation: 'invitation.accept', resources, unmapped },
      { operation: 'app_collaborator.add', resources: [`user ${guest.userId}`, `app ${appId}`], unmapped },
    ])
    const { data } = await owner.api.listAuditLogs({ params, query: { appId } })
    const expected = [...created, ...accepted].map(({ metadata }) => metadata.uid)
    expect(data.map(({ metadata }) => metadata.uid)).toEqual(expect.arrayContaining(expected))
  })

  it('record invitation.decline once', async () => {
    const guest = await service.createAccount()
    const { id } = await invite(guest.email)
    const decline = () => guest.api.declineInvitation({ params: { invitationId: id } })
    expect((await record(decline)).map(summarize)).toEqual([
      {
        operation: 'invitation.decline',
        resources: [`invitation ${id}`, inTeam()],
        unmapped: { ...byKey, email: guest.email, role: 'developer' },
      },
    ])
    expect(await record(decline)).toEqual([])
    expect(await recordRefused(() => guest.api.acceptInvitation({ params: { invitationId: id } }), 404)).toEqual([])
  })

  it.each([
    ['accept', ['invitation.accept', 'org_member.add']],
    ['decline', ['invitation.decline']],
  ])('record the session of the browser in which somebody presses %s', async (button, operations) => {
    const guest = await createSignedInMember(service)
    const path = new URL((await invite(guest.email)).url ?? '').pathname
    const headers = { 'x-request-id': 'page-1' }
    const events = await record(() => guest.browser.submit(path, `${path}/${button}`, {}, headers))
    expect(events.map(({ api }) => api.operation)).toEqual(operations)
    const session = await findSession(guest.userId)
    for (const event of events) {
      expect(event).toMatchObject({
        metadata: { correlation_uid: 'page-1' },
        http_request: { user_agent: 'Test Browser' },
        src_endpoint: { ip: '127.0.0.1' },
        unmapped: { actor_source: 'session' },
      })
      expect(event.actor).toEqual({
        user: { uid: String(guest.userId), name: guest.email, email_addr: guest.email, type_id: 1 },
        session: {
          uid: session.id,
          created_time: session.created_at.getTime(),
          issuer: service.baseUrl,
          is_mfa: false,
        },
      })
      expect(event.api.token).toBeUndefined()
    }
    expect(await record(() => guest.browser.post(`${path}/${button}`, {}))).toEqual([])
  })

  it('record somebody who joins with a new account as its holder, without a session', async () => {
    const email = `joins-${team.organizationId}@example.com`
    const { id, url } = await invite(email)
    const path = new URL(url ?? '').pathname
    const form = { display_name: 'Ada', new_password: password }
    const events = await record(() => createBrowser(service.baseUrl).submit(path, `${path}/join`, form))
    const { id: userId } = await service.deps.db
      .selectFrom('users')
      .select('id')
      .where('email', '=', email)
      .executeTakeFirstOrThrow()
    const unmapped = { actor_source: 'none', email, role: 'developer' }
    expect(events.map(summarize)).toEqual([
      { operation: 'invitation.accept', resources: [`invitation ${id}`, inTeam()], unmapped },
      { operation: 'org_member.add', resources: member({ userId }), unmapped },
    ])
    for (const event of events) {
      expect(event.actor).toEqual({ user: { uid: String(userId), name: 'Ada', email_addr: email, type_id: 1 } })
      expect(event.src_endpoint).toEqual({ ip: '127.0.0.1' })
      expect(event.http_request).toEqual({ user_agent: 'Test Browser' })
    }
  })
})

async function findSession(userId: number) {
  return await service.deps.db
    .selectFrom('sessions')
    .selectAll()
    .where('user_id', '=', userId)
    .executeTakeFirstOrThrow()
}

describe('service accounts', () => {
  it('record service_account.create, role_update and delete, each only when it changes something', async () => {
    let id = 0
    const create = async () => {
      id = (await owner.api.createServiceAccount({ params, body: { name: 'CI' } })).id
    }
    const created = await record(create)
    const resources = [`service_account ${id}`, inTeam()]
    expect(created.map(summarize)).toEqual([
      { operation: 'service_account.create', resources, unmapped: { ...byKey, name: 'CI', role: 'developer' } },
    ])
    const path = { params: { ...params, serviceAccountId: id } }
    const change = () => owner.api.updateServiceAccount({ ...path, body: { role: 'auditor' } })
    expect((await record(change)).map(summarize)).toEqual([
      {
        operation: 'service_account.role_update',
        resources,
        unmapped: { ...byKey, name: 'CI', role: 'auditor', previous_role: 'developer' },
      },
    ])
    expect(await record(change)).toEqual([])
    await setPlan(service, owner, 'free')
    const refused = () => owner.api.updateServiceAccount({ ...path, body: { role: 'viewer' } })
    expect(await recordRefused(refused, 403)).toEqual([])
    const remove = () => owner.api.deleteServiceAccount(path)
    expect((await record(remove)).map(summarize)).toEqual([
      { operation: 'service_account.delete', resources, unmapped: { ...byKey, name: 'CI', previous_role: 'auditor' } },
    ])
    expect(await recordRefused(remove, 404)).toEqual([])
  })

  it('record service_account_key.create without the key, and service_account_key.revoke once', async () => {
    const { id } = await createServiceAccountClient(service, team, 'developer')
    const path = { ...params, serviceAccountId: id }
    const answers: { id: number; key: string; expires_at?: string | null | undefined }[] = []
    const created = await record(async () => {
      const body = { name: 'deploy', expires_in: '30d' as const }
      answers.push(await owner.api.createServiceAccountKey({ params: path, body }))
    })
    const [key = { id: 0, key: 'none' }] = answers
    const resources = [`service_account_key ${key.id}`, `service_account ${id}`, inTeam()]
    expect(created.map(summarize)).toEqual([
      {
        operation: 'service_account_key.create',
        resources,
        unmapped: { ...byKey, name: 'deploy', expires_at: key.expires_at },
      },
    ])
    expect(JSON.stringify(created)).not.toContain(key.key.slice(-16))
    const endless = await record(() =>
      owner.api.createServiceAccountKey({ params: path, body: { name: 'endless', expires_in: 'none' } }),
    )
    expect(endless.map(({ unmapped }) => unmapped.expires_at)).toEqual([undefined])
    const revoke = () => owner.api.revokeServiceAccountKey({ params: { ...path, keyId: key.id } })
    expect((await record(revoke)).map(summarize)).toEqual([
      { operation: 'service_account_key.revoke', resources, unmapped: { ...byKey, name: 'deploy' } },
    ])
    expect(await record(revoke)).toEqual([])
    const revokeMissing = () => owner.api.revokeServiceAccountKey({ params: { ...path, keyId: 9_999_999 } })
    expect(await recordRefused(revokeMissing, 404)).toEqual([])
    const { id: other } = await createServiceAccountClient(service, team, 'developer')
    const revokeElsewhere = () =>
      owner.api.revokeServiceAccountKey({ params: { ...params, serviceAccountId: other, keyId: key.id } })
    expect(await recordRefused(revokeElsewhere, 404)).toEqual([])
  })

  it('record service_account_trust_rule.create and delete, and nothing for a rule that is there', async () => {
    const { id } = await createServiceAccountClient(service, team, 'developer')
    const path = { ...params, serviceAccountId: id }
    let ruleId = 0
    const body = { issuer: ci.issuer, repository: 'acme/app', workflow: 'release.yml', environment: 'live' }
    const create = async () => {
      ruleId = (await owner.api.createTrustRule({ params: path, body })).id
    }
    const created = await record(create)
    const resources = [`service_account_trust_rule ${ruleId}`, `service_account ${id}`, inTeam()]
    const unmapped = {
      ...byKey,
      trusted_issuer: ci.issuer,
      trusted_repository: 'acme/app',
      trusted_workflow: 'release.yml',
      trusted_environment: 'live',
    }
    expect(created.map(summarize)).toEqual([{ operation: 'service_account_trust_rule.create', resources, unmapped }])
    expect(await record(create)).toEqual([])
    const foreign = { ...body, issuer: 'https://ci.example' }
    expect(await recordRefused(() => owner.api.createTrustRule({ params: path, body: foreign }), 400)).toEqual([])
    const remove = () => owner.api.deleteTrustRule({ params: { ...path, ruleId } })
    expect((await record(remove)).map(summarize)).toEqual([
      { operation: 'service_account_trust_rule.delete', resources, unmapped },
    ])
    expect(await recordRefused(remove, 404)).toEqual([])
  })
})

describe('CI jobs', () => {
  it('record service_account.sign_in with their claims, and nothing when they are refused', async () => {
    const { id, ruleId } = await createTrustedAccount(service, { team, ci })
    const subjectToken = await ci.buildToken()
    const signIn = async (headers: Record<string, string>) => {
      expect((await signInJob(service, subjectToken, headers)).status).toBe(200)
    }
    const [event, ...others] = await record(() => signIn({ 'x-request-id': 'job-1' }))
    expect(others).toEqual([])
    expect(event && summarize(event)).toEqual({
      operation: 'service_account.sign_in',
      resources: [`service_account ${id}`, inTeam()],
      unmapped: {
        actor_source: 'federated',
        repository: 'acme/app',
        workflow_ref: 'acme/app/.github/workflows/release.yml@refs/heads/main',
        run_id: '42',
        ref: 'refs/heads/main',
        rule_id: String(ruleId),
      },
    })
    expect(event).toMatchObject({
      activity_id: 99,
      src_endpoint: { ip: '127.0.0.1' },
      http_request: { user_agent: 'ci/1' },
      metadata: { correlation_uid: 'job-1' },
    })
    expect(event?.actor).toEqual({ user: { uid: `sa_${id}`, name: 'CI', type_id: 4 } })
    expect(event?.api.token).toBeUndefined()
    for (const token of [subjectToken, await ci.buildToken({ repository: 'evil/app' })]) {
      expect(await record(async () => expect((await signInJob(service, token)).status).toBe(400))).toEqual([])
    }
  })

  it('are told apart by their repository, run and rule in what they do afterwards', async () => {
    const { id, ruleId } = await createTrustedAccount(service, { team, ci })
    const { token } = await signInJob(service, await ci.buildToken())
    const api = service.client(token)
    const body = { issuer: ci.issuer, repository: 'acme/other', workflow: 'other.yml' }
    const [event] = await record(() => api.createTrustRule({ params: { ...params, serviceAccountId: id }, body }))
    expect(event && summarize(event).unmapped).toEqual({
      actor_source: 'ci',
      repository: 'acme/app',
      run_id: '42',
      rule_id: String(ruleId),
      trusted_issuer: ci.issuer,
      trusted_repository: 'acme/other',
      trusted_workflow: 'other.yml',
    })
    expect(event?.actor).toEqual({ user: { uid: `sa_${id}`, name: 'CI', type_id: 4 } })
    expect(event?.api.token).toBeUndefined()
  })
})

describe('the operator', () => {
  it.each([
    ['org_allowed_domain.add', addAllowedDomain, removeAllowedDomain],
    ['org_allowed_domain.remove', removeAllowedDomain, addAllowedDomain],
  ])('records %s as staff, once, and says no more of who it was', async (operation, change, prepare) => {
    await prepare(service.deps, { ...params, domain: 'acme.example' })
    const act = () => change(service.deps, { ...params, domain: 'ACME.example' })
    const [event, ...others] = await record(act)
    expect(others).toEqual([])
    expect(event && summarize(event)).toEqual({
      operation,
      resources: ['domain acme.example', inTeam()],
      unmapped: { actor_source: 'admin_api' },
    })
    expect(event?.actor).toEqual({ user: { name: 'Godwit staff', type_id: 99, type: 'godwit_staff' } })
    expect(event?.src_endpoint).toEqual({ name: 'unknown' })
    expect(event).not.toHaveProperty('http_request')
    expect(event?.metadata).not.toHaveProperty('correlation_uid')
    expect(await record(act)).toEqual([])
    const wrong = () => change(service.deps, { ...params, domain: 'no domain' })
    expect(await recordRefused(wrong, 400)).toEqual([])
  })
})

describe('who did it', () => {
  const rename = (token: string, name: string, headers: Record<string, string> = {}) =>
    record(() => service.client(token, headers).updateOrganization({ params, body: { name } }))

  it('is a person with the key that was used, under the names of that moment', async () => {
    await owner.api.updateCurrentUser({ body: { display_name: 'Grace' } })
    const { id, key } = await owner.api.createApiKey({ body: { name: 'laptop' } })
    const [event] = await rename(key, 'Birds')
    await owner.api.updateCurrentUser({ body: { display_name: 'Somebody else' } })
    await owner.api.revokeApiKey({ params: { keyId: id } })
    const user = { uid: String(owner.userId), name: 'Grace', email_addr: owner.email, type_id: 1 }
    expect(event?.actor).toEqual({ user })
    expect(event?.api).toEqual({ operation: 'organization.rename', token: { uid: String(id), name: 'laptop' } })
    expect(event?.unmapped.actor_source).toBe('api_key')
    const { data } = await owner.api.listAuditLogs({ params, query: { operation: 'organization.rename' } })
    expect(data).toEqual([event])
  })

  it.each([
    [true, { is_mfa: true }],
    [false, { is_mfa: false }],
    [null, {}],
  ])('is a person with the session that was used (second factor: %s)', async (isMfa, expected) => {
    const now = new Date()
    const issuer = 'https://idp.example'
    const { id: sid } = await startClientSession(service.deps.db, {
      userId: owner.userId,
      issuer,
      isMfa,
      userAgent: 'x',
      address: '192.0.2.1',
      client: 'command_line',
      now,
      lifetimeMs: 60_000,
    })
    const { token } = await service.deps.accessTokens.sign({ sub: String(owner.userId), sid })
    const [event] = await rename(token, 'Birds')
    expect(event?.actor).toEqual({
      user: { uid: String(owner.userId), name: owner.email, email_addr: owner.email, type_id: 1 },
      session: { uid: sid, created_time: now.getTime(), issuer, ...expected },
    })
    expect(event?.api).toEqual({ operation: 'organization.rename' })
    expect(event?.unmapped.actor_source).toBe('session')
  })

  it('is a service account with its key', async () => {
    const { id } = await createServiceAccountClient(service, team, 'admin')
    const path = { params: { ...params, serviceAccountId: id } }
    const key = await owner.api.createServiceAccountKey({ ...path, body: { name: 'deploy' } })
    const [event] = await rename(key.key, 'Birds')
    expect(event?.actor).toEqual({ user: { uid: `sa_${id}`, name: 'CI', type_id: 4 } })
    expect(event?.api).toEqual({ operation: 'organization.rename', token: { uid: String(key.id), name: 'deploy' } })
    expect(event?.unmapped.actor_source).toBe('service_account')
  })

  it('comes with where the request came from, and its id only when it had one', async () => {
    const headers = { 'user-agent': 'godwit-test/1', 'x-request-id': 'request-1' }
    const [event] = await rename(owner.apiKey, 'Birds', headers)
    expect(event?.src_endpoint).toEqual({ ip: '127.0.0.1' })
    expect(event?.http_request).toEqual({ user_agent: 'godwit-test/1' })
    expect(event?.metadata).toMatchObject({ tenant_uid: String(team.organizationId), correlation_uid: 'request-1' })
    const [other] = await rename(owner.apiKey, 'Bees')
    expect(other?.metadata).not.toHaveProperty('correlation_uid')
  })
})

describe("a person's own account", () => {
  it('is in no log: neither its name, its keys nor its end, after which the rest no longer has its id', async () => {
    const account = await createMember(service, team, 'admin')
    const before = await listEvents()
    await account.api.updateCurrentUser({ body: { display_name: 'Ada' } })
    const { id } = await account.api.createApiKey({ body: { name: 'laptop' } })
    await account.api.revokeApiKey({ params: { keyId: id } })
    expect(await listEvents()).toEqual(before)
    await account.api.updateOrganization({ params, body: { name: 'Birds' } })
    await account.api.deleteCurrentUser()
    const after = await listEvents()
    expect(after.slice(0, before.length)).toEqual(before)
    expect(after.slice(before.length).map(({ api, actor }) => [api.operation, actor.user.uid])).toEqual([
      ['organization.rename', undefined],
    ])
    expect(await listStoredEvents(account.organizationId)).toEqual([])
  })
})
