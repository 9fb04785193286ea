import type { InvitedRole } from '@godwit/contract'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { findInvitationByToken, hasPendingInvitation } from '../../src/invitations/queries.ts'
import {
  createMember,
  createServiceAccountClient,
  createTeam,
  setUnverified,
  type Team,
} from '../organizations/teams.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

const start = new Date('2026-11-21T12:00:00Z')
const inDays = (days: number) => new Date(start.getTime() + days * 24 * 60 * 60 * 1000)

let service: TestService
let team: Team
let params: { organizationId: number }
let now: Date

beforeAll(async () => {
  service = await createTestService({ clock: () => now })
})
beforeEach(async () => {
  now = start
  team = await createTeam(service)
  params = { organizationId: team.organizationId }
})
afterAll(() => service.stop())

const invite = (email: string, role: InvitedRole = 'developer', app_id?: string) =>
  team.owner.api.createInvitation({ params, body: { email, role, app_id } })

const list = async () => (await team.owner.api.listInvitations({ params })).invitations

const readToken = (url: string | undefined) => url?.split('/').at(-1) ?? ''

describe('POST /api/v1/organizations/{organizationId}/invitations', () => {
  it('answers a link once, of which only a hash is stored', async () => {
    const { url, ...invitation } = await invite('new@example.com', 'viewer')
    expect(invitation).toEqual({
      id: expect.any(Number),
      organization_id: team.organizationId,
      organization_name: 'Acme',
      email: 'new@example.com',
      role: 'viewer',
      invited_by: team.owner.email,
      created_at: start.toISOString(),
      expires_at: inDays(7).toISOString(),
    })
    expect(url).toMatch(new RegExp(`^${service.baseUrl}/invitations/[A-Za-z0-9_-]{43}$`))
    expect(await list()).toEqual([invitation])
    const { rows } = await sql`select i::text as row from invitations as i`.execute(service.deps.db)
    expect(JSON.stringify(rows)).not.toContain(readToken(url))
    expect(await findInvitationByToken(service.deps.db, { token: readToken(url), now })).toMatchObject({
      id: invitation.id,
    })
  })

  it('invites to one app', async () => {
    const appId = await createTestApp({ ...team.owner, ...params }, 'Atlas')
    expect(await invite('new@example.com', 'admin', appId)).toMatchObject({ app_id: appId, app_name: 'Atlas' })
    const personal = await createTestApp(team.owner, 'Personal')
    const toPersonal = await team.owner.api.createInvitation({
      params: { organizationId: team.owner.organizationId },
      body: { email: 'new@example.com', role: 'developer', app_id: personal },
    })
    expect(toPersonal).toMatchObject({ app_id: personal })
    await expect(invite('new@example.com', 'developer', personal)).rejects.toMatchObject({ status: 404 })
    await expect(invite('new@example.com', 'developer', 'nothing')).rejects.toMatchObject({ status: 404 })
    await expect(invite('new@example.com', 'viewer', appId)).rejects.toMatchObject({
      status: 400,
      details: expect.stringContaining('role:'),
    })
  })

  it('renews the one that is open for the same e-mail to the same', async () => {
    const appId = await createTestApp({ ...team.owner, ...params })
    const first = await invite('New@example.com', 'viewer')
    const toApp = await invite('new@example.com', 'developer', appId)
    now = inDays(8)
    const second = await invite('new@EXAMPLE.com', 'admin')
    expect(second).toMatchObject({ id: first.id, role: 'admin', expires_at: inDays(15).toISOString() })
    expect(toApp.id).not.toBe(first.id)
    expect((await list()).map(({ id }) => id)).toEqual([first.id])
    const find = (url: string | undefined) => findInvitationByToken(service.deps.db, { token: readToken(url), now })
    expect(await find(first.url)).toBeUndefined()
    expect(await find(second.url)).toMatchObject({ role: 'admin' })
    expect(await find(toApp.url)).toBeUndefined()
  })

  it('leaves one invitation when many ask at once', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => invite('new@example.com')))
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
    expect(await list()).toHaveLength(1)
  })

  it('refuses whoever is in already', async () => {
    const member = await createMember(service, team, 'developer')
    for (const role of ['developer', 'admin'] as const) {
      await expect(invite(member.email, role)).rejects.toMatchObject({ status: 409, code: 'already_member' })
    }
    const appId = await createTestApp({ ...team.owner, ...params })
    const collaborator = await service.createAccount()
    await team.owner.api.addCollaborator({ params: { appId }, body: { email: collaborator.email } })
    await expect(invite(collaborator.email, 'admin', appId)).rejects.toMatchObject({ code: 'already_member' })
    expect(await invite(collaborator.email, 'developer')).toMatchObject({ email: collaborator.email })
  })

  it('is refused for a personal organization, without the right, to strangers and for what is no e-mail', async () => {
    const stranger = await service.createAccount()
    const manager = await createMember(service, team, 'appManager')
    const body = { email: 'new@example.com', role: 'viewer' as const }
    const personal = { organizationId: stranger.organizationId }
    await expect(stranger.api.createInvitation({ params: personal, body })).rejects.toMatchObject({
      status: 409,
      code: 'organization_is_personal',
    })
    await expect(manager.api.createInvitation({ params, body })).rejects.toMatchObject({ status: 403 })
    await expect(manager.api.listInvitations({ params })).rejects.toMatchObject({ status: 403 })
    await expect(stranger.api.createInvitation({ params, body })).rejects.toMatchObject({ status: 404 })
    await expect(stranger.api.listInvitations({ params })).rejects.toMatchObject({ status: 404 })
    await expect(invite('nobody')).rejects.toMatchObject({ status: 400, details: expect.stringContaining('email:') })
    await expect(invite('new@example.com', 'owner' as 'admin')).rejects.toMatchObject({ status: 400 })
  })

  it('can come from a service account, which has no e-mail', async () => {
    const { api } = await createServiceAccountClient(service, team, 'admin')
    const invitation = await api.createInvitation({ params, body: { email: 'new@example.com', role: 'viewer' } })
    expect(invitation.invited_by).toBeUndefined()
  })
})

describe('with a mail server', () => {
  it('nobody is flooded with mails, and nobody loses the mails for a lost password to it', async () => {
    const mailing = await createTestService({
      config: { mail: { smtpUrl: 'smtp://127.0.0.1:1', from: 'g@x.example' } },
    })
    const teams = [await createTeam(mailing), await createTeam(mailing)]
    const body = { email: 'flooded@example.com', role: 'viewer' as const }
    const answers: string[] = []
    for (let i = 0; i < 8; i += 1) {
      const { owner, organizationId } = teams[i % 2] as (typeof teams)[number]
      const answer = i < 4 ? owner.api.createInvitation : owner.api.addOrganizationUser
      answers.push(
        await answer({ params: { organizationId }, body }).then(
          () => 'sent',
          (error) => error.code,
        ),
      )
    }
    expect(answers).toEqual([...Array(5).fill('sent'), ...Array(3).fill('rate_limited')])
    await mailing.deps.signInLimits.takeMail({ email: body.email, address: '127.0.0.1' })
    await mailing.stop()
  })

  it('the link goes by mail only, in a job of the same transaction', async () => {
    const mailing = await createTestService({
      config: { mail: { smtpUrl: 'smtp://127.0.0.1:1', from: 'g@x.example' } },
    })
    const founder = await createTeam(mailing)
    const invitation = await founder.owner.api.createInvitation({
      params: { organizationId: founder.organizationId },
      body: { email: 'new@example.com', role: 'viewer' },
    })
    expect(invitation).not.toHaveProperty('url')
    const { rows } = await sql<{ data: { to: string; text: string } }>`
      select data from pgboss.job where name = 'send-mail'`.execute(mailing.deps.db)
    expect(rows).toMatchObject([{ data: { to: 'new@example.com' } }])
    const token = /\/invitations\/(\S+)/.exec(rows[0]?.data.text ?? '')?.[1] ?? ''
    expect(await findInvitationByToken(mailing.deps.db, { token, now: new Date() })).toMatchObject({
      id: invitation.id,
    })
    await mailing.stop()
  })
})

describe('DELETE /api/v1/organizations/{organizationId}/invitations/{invitationId}', () => {
  const revoke = (invitationId: number) => team.owner.api.revokeInvitation({ params: { ...params, invitationId } })

  it('ends an invitation, and changes nothing when repeated', async () => {
    const guest = await service.createAccount()
    const { id, url } = await invite(guest.email)
    await revoke(id)
    await revoke(id)
    expect(await list()).toEqual([])
    expect(await guest.api.listReceivedInvitations()).toEqual({ invitations: [] })
    expect(await findInvitationByToken(service.deps.db, { token: readToken(url), now })).toBeUndefined()
    await expect(guest.api.acceptInvitation({ params: { invitationId: id } })).rejects.toMatchObject({ status: 404 })
    expect((await invite(guest.email)).id).not.toBe(id)
  })

  it('is a 404 for one of another organization, one that was answered, and one that never was', async () => {
    const elsewhere = await createTeam(service)
    const foreign = await elsewhere.owner.api.createInvitation({
      params: { organizationId: elsewhere.organizationId },
      body: { email: 'new@example.com', role: 'viewer' },
    })
    const guest = await service.createAccount()
    const answered = await invite(guest.email)
    await guest.api.acceptInvitation({ params: { invitationId: answered.id } })
    for (const id of [foreign.id, answered.id, 999_999_999]) {
      await expect(revoke(id)).rejects.toMatchObject({ status: 404, code: 'not_found' })
    }
    expect(await hasPendingInvitation(service.deps.db, { email: 'new@example.com', now })).toBe(true)
  })

  it('is refused without the right and to strangers', async () => {
    const { id: invitationId } = await invite('new@example.com')
    const developer = await createMember(service, team, 'developer')
    const stranger = await service.createAccount()
    const revocation = { params: { ...params, invitationId } }
    await expect(developer.api.revokeInvitation(revocation)).rejects.toMatchObject({ status: 403 })
    await expect(stranger.api.revokeInvitation(revocation)).rejects.toMatchObject({ status: 404 })
  })
})

describe('GET /api/v1/users/me/invitations', () => {
  it('shows what was sent to the e-mail in any case, until it expires', async () => {
    const { id } = await invite('Later@Example.com')
    const guest = await service.createAccount({ email: 'later@example.com' })
    const { invitations } = await guest.api.listReceivedInvitations()
    expect(invitations).toMatchObject([{ id, organization_name: 'Acme' }])
    expect(invitations[0]).not.toHaveProperty('url')
    now = inDays(7)
    expect(await guest.api.listReceivedInvitations()).toEqual({ invitations: [] })
  })

  it('shows an account nothing before its e-mail is known to be its own', async () => {
    const guest = await service.createAccount()
    const { id: invitationId } = await invite(guest.email)
    await setUnverified(service, guest)
    expect(await guest.api.listReceivedInvitations()).toEqual({ invitations: [] })
    for (const answer of [guest.api.acceptInvitation, guest.api.declineInvitation]) {
      await expect(answer({ params: { invitationId } })).rejects.toMatchObject({ status: 404 })
    }
  })
})
