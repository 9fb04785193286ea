import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { createMember, createServiceAccountClient, createTeam, listRoles, setUnverified, type Team } from './teams.ts'

let service: TestService
let team: Team
let params: { organizationId: number }

beforeAll(async () => {
  service = await createTestService()
})
beforeEach(async () => {
  team = await createTeam(service)
  params = { organizationId: team.organizationId }
})
afterAll(() => service.stop())

const add = (account: Pick<TestAccount, 'email'>, role: 'admin' | 'developer' | 'viewer' = 'developer') =>
  team.owner.api.addOrganizationUser({ params, body: { email: account.email, role } })

describe('POST /api/v1/organizations/{organizationId}/users', () => {
  it('adds an account whose e-mail is known to be its own, in any case, and again without a change', async () => {
    const account = await service.createAccount()
    expect(await add({ email: account.email.toUpperCase() })).toEqual({ status: 'added' })
    expect(await add(account)).toEqual({ status: 'added' })
    expect(await listRoles(service, team.organizationId)).toMatchObject({ [account.userId]: 'developer' })
    await expect(add(account, 'admin')).rejects.toMatchObject({ status: 409, code: 'already_member' })
  })

  it('invites whoever has no account', async () => {
    expect(await add({ email: 'nobody@example.com' })).toMatchObject({
      status: 'invited',
      invitation: { email: 'nobody@example.com', role: 'developer', url: expect.stringContaining('/invitations/') },
    })
  })

  it('gives an account nothing for an e-mail that nobody has shown to be its own', async () => {
    const account = await service.createAccount()
    await setUnverified(service, account)
    expect(await add(account)).toMatchObject({ status: 'invited' })
    expect(await listRoles(service, team.organizationId)).toEqual({ [team.owner.userId]: 'owner' })
  })

  it('closes the invitation that waits for the one who is added, so that it does not let them back in later', async () => {
    const account = await service.createAccount()
    const { id: invitationId } = await team.owner.api.createInvitation({
      params,
      body: { email: account.email, role: 'admin' },
    })
    await add(account)
    await team.owner.api.removeOrganizationUser({ params: { ...params, userId: account.userId } })
    expect(await account.api.listReceivedInvitations()).toEqual({ invitations: [] })
    await account.api.acceptInvitation({ params: { invitationId } })
    expect(await listRoles(service, team.organizationId)).toEqual({ [team.owner.userId]: 'owner' })
  })

  it('is refused for a personal organization, without the right, to strangers, and for what is no e-mail or role', async () => {
    const stranger = await service.createAccount()
    const developer = await createMember(service, team, 'developer')
    const body = { email: stranger.email, role: 'viewer' as const }
    const personal = { organizationId: team.owner.organizationId }
    await expect(team.owner.api.addOrganizationUser({ params: personal, body })).rejects.toMatchObject({
      status: 409,
      code: 'organization_is_personal',
    })
    await expect(developer.api.addOrganizationUser({ params, body })).rejects.toMatchObject({ status: 403 })
    await expect(stranger.api.addOrganizationUser({ params, body })).rejects.toMatchObject({ status: 404 })
    for (const wrong of [{ email: 'x' }, { role: 'owner' }, { role: 'none' }, { role: 'auditor' }]) {
      await expect(
        team.owner.api.addOrganizationUser({ params, body: { ...body, ...wrong } as typeof body }),
      ).rejects.toMatchObject({ status: 400 })
    }
  })

  it('is done by an admin and by a service account too', async () => {
    const admin = await createMember(service, team, 'admin')
    const machine = await createServiceAccountClient(service, team, 'admin')
    for (const { api } of [admin, machine]) {
      const { email } = await service.createAccount()
      expect(await api.addOrganizationUser({ params, body: { email, role: 'viewer' } })).toEqual({ status: 'added' })
    }
  })
})

describe('PATCH /api/v1/organizations/{organizationId}/users/{userId}', () => {
  it('changes the role, and changes nothing when repeated', async () => {
    const member = await createMember(service, team, 'viewer')
    const change = { params: { ...params, userId: member.userId }, body: { role: 'admin' as const } }
    await team.owner.api.updateOrganizationUser(change)
    await team.owner.api.updateOrganizationUser(change)
    expect(await listRoles(service, team.organizationId)).toMatchObject({ [member.userId]: 'admin' })
  })

  it('leaves the owner the owner', async () => {
    const admin = await createMember(service, team, 'admin')
    for (const { api } of [admin, team.owner]) {
      await expect(
        api.updateOrganizationUser({ params: { ...params, userId: team.owner.userId }, body: { role: 'viewer' } }),
      ).rejects.toMatchObject({ status: 403, details: expect.stringContaining('transfer') })
    }
  })

  it('is a 404 for a member of another organization, and refused without the right', async () => {
    const elsewhere = await createTeam(service)
    const foreigner = await createMember(service, elsewhere, 'viewer')
    const developer = await createMember(service, team, 'developer')
    const body = { role: 'admin' as const }
    const userId = foreigner.userId
    await expect(team.owner.api.updateOrganizationUser({ params: { ...params, userId }, body })).rejects.toMatchObject({
      status: 404,
    })
    await expect(
      foreigner.api.updateOrganizationUser({ params: { ...params, userId: developer.userId }, body }),
    ).rejects.toMatchObject({ status: 404 })
    await expect(
      developer.api.updateOrganizationUser({ params: { ...params, userId: developer.userId }, body }),
    ).rejects.toMatchObject({ status: 403 })
    await expect(
      team.owner.api.updateOrganizationUser({
        params: { ...params, userId: developer.userId },
        body: { role: 'owner' } as unknown as typeof body,
      }),
    ).rejects.toMatchObject({ status: 400 })
  })
})

describe('DELETE /api/v1/organizations/{organizationId}/users/{userId}', () => {
  it('removes a member, who then sees nothing', async () => {
    const member = await createMember(service, team, 'developer')
    const removal = { params: { ...params, userId: member.userId } }
    await team.owner.api.removeOrganizationUser(removal)
    await expect(member.api.getOrganization({ params })).rejects.toMatchObject({ status: 404 })
    await expect(team.owner.api.removeOrganizationUser(removal)).rejects.toMatchObject({ status: 404 })
  })

  it('refuses the owner, members without the right, and members of other organizations', async () => {
    const admin = await createMember(service, team, 'admin')
    const viewer = await createMember(service, team, 'viewer')
    const foreigner = await createMember(service, await createTeam(service), 'viewer')
    const remove = (caller: TestAccount, target: TestAccount) =>
      caller.api.removeOrganizationUser({ params: { ...params, userId: target.userId } })
    await expect(remove(admin, team.owner)).rejects.toMatchObject({ status: 403 })
    await expect(remove(viewer, admin)).rejects.toMatchObject({ status: 403 })
    await expect(remove(admin, foreigner)).rejects.toMatchObject({ status: 404 })
    await expect(remove(foreigner, viewer)).rejects.toMatchObject({ status: 404 })
  })
})
