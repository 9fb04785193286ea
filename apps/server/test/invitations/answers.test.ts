import type { InvitedRole } from '@godwit/contract'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { acceptInvitationByToken, declineInvitationByToken } from '../../src/invitations/answer-actions.ts'
import {
  createMember,
  createServiceAccountClient,
  createTeam,
  listRoles,
  settle,
  setUnverified,
  type Team,
} from '../organizations/teams.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let team: Team
let params: { organizationId: number }
let guest: TestAccount
let now: Date | undefined

beforeAll(async () => {
  service = await createTestService({ clock: () => now ?? new Date() })
})
beforeEach(async () => {
  now = undefined
  team = await createTeam(service)
  params = { organizationId: team.organizationId }
  guest = await service.createAccount()
})
afterAll(() => service.stop())

async function invite(account: Pick<TestAccount, 'email'>, role: InvitedRole = 'developer', app_id?: string) {
  const { id, url } = await team.owner.api.createInvitation({ params, body: { email: account.email, role, app_id } })
  return { id, params: { invitationId: id }, token: url?.split('/').at(-1) ?? '' }
}

const isEmailVerified = async (account: TestAccount) => {
  const { email_verified_at } = await service.deps.db
    .selectFrom('users')
    .select('email_verified_at')
    .where('id', '=', account.userId)
    .executeTakeFirstOrThrow()
  return email_verified_at !== null
}

const setMailed = async (id: number) =>
  await service.deps.db.updateTable('invitations').set({ is_mailed: true }).where('id', '=', id).execute()

const toDoer = ({ userId, email }: TestAccount) => ({
  by: {
    actorId: String(userId),
    actor: { user: { uid: String(userId), name: email, email_addr: email, type_id: 1 } },
    unmapped: { actor_source: 'none' },
  },
  from: { address: undefined, userAgent: undefined, correlationId: undefined },
})

const inAWeek = () => new Date(Date.now() + 7 * 24 * 60 * 60 * 1000 + 1000)

describe('POST /api/v1/invitations/{invitationId}/accept', () => {
  it('makes a member with the role of the invitation, and changes nothing when repeated', async () => {
    const invitation = await invite(guest, 'appManager')
    await guest.api.acceptInvitation(invitation)
    await guest.api.acceptInvitation(invitation)
    expect(await listRoles(service, team.organizationId)).toMatchObject({ [guest.userId]: 'appManager' })
    expect(await guest.api.listReceivedInvitations()).toEqual({ invitations: [] })
    expect((await team.owner.api.listInvitations({ params })).invitations).toEqual([])
  })

  it('does not bring back who accepted and was removed', async () => {
    const invitation = await invite(guest)
    await guest.api.acceptInvitation(invitation)
    await team.owner.api.removeOrganizationUser({ params: { ...params, userId: guest.userId } })
    await guest.api.acceptInvitation(invitation)
    expect(await listRoles(service, team.organizationId)).toEqual({ [team.owner.userId]: 'owner' })
  })

  it('makes a collaborator on the one app', async () => {
    const appId = await createTestApp({ ...team.owner, ...params })
    await guest.api.acceptInvitation(await invite(guest, 'admin', appId))
    expect(await team.owner.api.listCollaborators({ params: { appId } })).toEqual([
      { user_id: guest.userId, email: guest.email, role: 'admin' },
    ])
    expect(await listRoles(service, team.organizationId)).toEqual({ [team.owner.userId]: 'owner' })
  })

  it('leaves the role that somebody has by now', async () => {
    const appId = await createTestApp({ ...team.owner, ...params })
    const toApp = await invite(guest, 'developer', appId)
    const toTeam = await invite(guest, 'viewer')
    await service.deps.db
      .insertInto('organization_members')
      .values({ organization_id: team.organizationId, user_id: guest.userId, role: 'admin' })
      .execute()
    await service.deps.db
      .insertInto('app_collaborators')
      .values({ app_id: appId, user_id: guest.userId, role: 'admin' })
      .execute()
    for (const invitation of [toApp, toTeam]) await guest.api.acceptInvitation(invitation)
    expect(await listRoles(service, team.organizationId)).toMatchObject({ [guest.userId]: 'admin' })
    expect(await team.owner.api.listCollaborators({ params: { appId } })).toMatchObject([{ role: 'admin' }])
  })

  it('is a 404 for an invitation to somebody else, one that has expired, and none', async () => {
    const other = await service.createAccount()
    const toOther = await invite(other)
    await expect(guest.api.acceptInvitation(toOther)).rejects.toMatchObject({ status: 404, code: 'not_found' })
    await expect(guest.api.acceptInvitation({ params: { invitationId: 999_999_999 } })).rejects.toMatchObject({
      status: 404,
    })
    const invitation = await invite(guest)
    await other.api.acceptInvitation(toOther)
    now = inAWeek()
    await expect(guest.api.acceptInvitation(invitation)).rejects.toMatchObject({ status: 404 })
    await expect(guest.api.declineInvitation(invitation)).rejects.toMatchObject({ status: 404 })
    await other.api.acceptInvitation(toOther)
    expect(Object.keys(await listRoles(service, team.organizationId))).toHaveLength(2)
  })

  it('is not for service accounts', async () => {
    const { api } = await createServiceAccountClient(service, team, 'admin')
    await expect(api.acceptInvitation(await invite(guest))).rejects.toMatchObject({ status: 403 })
  })

  it('is done once when it is asked many times at once', async () => {
    for (let round = 0; round < 20; round += 1) {
      const person = await service.createAccount()
      const invitation = await invite(person)
      const accept = () => person.api.acceptInvitation(invitation)
      expect(await settle([accept(), accept(), accept()])).toEqual(['done', 'done', 'done'])
      expect(await listRoles(service, team.organizationId)).toMatchObject({ [person.userId]: 'developer' })
    }
  })

  it('and a revocation at the same time: one of them happens', async () => {
    for (let round = 0; round < 20; round += 1) {
      const person = await service.createAccount()
      const { id } = await invite(person)
      const [accepted, revoked] = await settle([
        person.api.acceptInvitation({ params: { invitationId: id } }),
        team.owner.api.revokeInvitation({ params: { ...params, invitationId: id } }),
      ])
      expect([accepted, revoked].toSorted()).toEqual([404, 'done'])
      expect(person.userId in (await listRoles(service, team.organizationId))).toBe(accepted === 'done')
    }
  })

  it('and the deletion of the app at the same time answer 200 or 404', async () => {
    for (let round = 0; round < 20; round += 1) {
      const appId = await createTestApp({ ...team.owner, ...params })
      const invitation = await invite(guest, 'developer', appId)
      const [accepted, deleted] = await settle([
        guest.api.acceptInvitation(invitation),
        team.owner.api.deleteApp({ params: { appId } }),
      ])
      expect(deleted).toBe('done')
      expect(['done', 404]).toContain(accepted)
    }
  })
})

describe('POST /api/v1/invitations/{invitationId}/decline', () => {
  it('ends the invitation, and changes nothing when repeated', async () => {
    const invitation = await invite(guest)
    await guest.api.declineInvitation(invitation)
    await guest.api.declineInvitation(invitation)
    await expect(guest.api.acceptInvitation(invitation)).rejects.toMatchObject({ status: 404 })
    expect((await team.owner.api.listInvitations({ params })).invitations).toEqual([])
    await guest.api.acceptInvitation(await invite(guest))
    await expect(guest.api.declineInvitation(invitation)).resolves.toBeUndefined()
    expect(await listRoles(service, team.organizationId)).toMatchObject({ [guest.userId]: 'developer' })
  })

  it('is a 404 for an invitation to somebody else', async () => {
    const other = await createMember(service, team, 'viewer')
    await expect(other.api.declineInvitation(await invite(guest))).rejects.toMatchObject({ status: 404 })
  })
})

describe('the link of an invitation', () => {
  const accept = (account: TestAccount, token: string) =>
    acceptInvitationByToken(service.deps, toDoer(account), { token, userId: account.userId })

  it('lets in who has it and the e-mail, twice at once as well', async () => {
    const { token } = await invite({ email: guest.email.toUpperCase() }, 'viewer')
    await Promise.all([accept(guest, token), accept(guest, token)])
    expect(await listRoles(service, team.organizationId)).toMatchObject({ [guest.userId]: 'viewer' })
  })

  it('lets nobody in with another e-mail', async () => {
    const { token } = await invite(guest)
    const finder = await service.createAccount()
    await expect(accept(finder, token)).rejects.toMatchObject({ code: 'forbidden' })
    const declined = declineInvitationByToken(service.deps, toDoer(finder), { token, userId: finder.userId })
    await expect(declined).rejects.toMatchObject({ code: 'forbidden' })
    await expect(accept(guest, 'nothing')).rejects.toMatchObject({ code: 'not_found' })
    await accept(guest, token)
  })

  it('proves the e-mail only when it went by mail', async () => {
    await setUnverified(service, guest)
    await accept(guest, (await invite(guest)).token)
    expect(await isEmailVerified(guest)).toBe(false)
    const other = await service.createAccount()
    await setUnverified(service, other)
    const mailed = await invite(other)
    await setMailed(mailed.id)
    await accept(other, mailed.token)
    expect(await isEmailVerified(other)).toBe(true)
  })

  it('declines', async () => {
    const { token } = await invite(guest)
    await declineInvitationByToken(service.deps, toDoer(guest), { token, userId: guest.userId })
    await expect(accept(guest, token)).rejects.toMatchObject({ code: 'not_found' })
  })
})
