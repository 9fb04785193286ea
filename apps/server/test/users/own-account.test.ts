import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { removeOrganization } from '../../src/organizations/remove-organization.ts'
import { createMember, createServiceAccountClient, createTeam, listRoles, settle } from '../organizations/teams.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService

beforeAll(async () => {
  service = await createTestService()
})
afterAll(() => service.stop())

async function exists(account: TestAccount): Promise<boolean> {
  const rows = await service.deps.db.selectFrom('users').select('id').where('id', '=', account.userId).execute()
  return rows.length > 0
}

describe('PATCH /api/v1/users/me', () => {
  it('changes what is given, removes what is null, and leaves what is absent', async () => {
    const { api } = await service.createAccount()
    const before = await api.getCurrentUser()
    const changed = await api.updateCurrentUser({ body: { display_name: 'Ada', patch_overage_limit: 7 } })
    expect(changed).toEqual({ ...before, display_name: 'Ada', patch_overage_limit: 7 })
    expect(await api.updateCurrentUser({ body: {} })).toEqual(changed)
    expect(await api.updateCurrentUser({ body: { patch_overage_limit: null } })).toEqual({
      ...before,
      display_name: 'Ada',
    })
    expect(await api.updateCurrentUser({ body: { display_name: null, patch_overage_limit: 0 } })).toEqual({
      ...before,
      patch_overage_limit: 0,
    })
    expect(await api.getCurrentUser()).toEqual({ ...before, patch_overage_limit: 0 })
  })

  it.each([
    ['display_name', ''],
    ['display_name', 'x'.repeat(129)],
    ['patch_overage_limit', -1],
    ['patch_overage_limit', 1.5],
  ])('refuses %s %j', async (field, value) => {
    const { api } = await service.createAccount()
    await expect(api.updateCurrentUser({ body: { [field]: value } })).rejects.toMatchObject({
      status: 400,
      details: expect.stringContaining(`${field}:`),
    })
  })

  it('changes nothing that the caller may not set', async () => {
    const { api } = await service.createAccount()
    const before = await api.getCurrentUser()
    const body = { plan: 'enterprise', email: 'root@example.com', id: 1, payment_customer_id: 'cus_1' }
    expect(await api.updateCurrentUser({ body: body as object })).toEqual(before)
  })

  it('is refused to a release-and-patch key and to a service account', async () => {
    const weak = await service.createAccount({ permission: 'release_and_patch' })
    const machine = await createServiceAccountClient(service, await createTeam(service), 'admin')
    for (const { api } of [weak, machine]) {
      await expect(api.updateCurrentUser({ body: {} })).rejects.toMatchObject({ status: 403 })
      await expect(api.deleteCurrentUser()).rejects.toMatchObject({ status: 403 })
    }
  })
})

describe('DELETE /api/v1/users/me', () => {
  it('takes the account with its personal organization, memberships, keys and collaborations', async () => {
    const team = await createTeam(service)
    const account = await createMember(service, team, 'admin')
    const appId = await createTestApp(account)
    const shared = await createTestApp({ ...team.owner, organizationId: team.organizationId })
    await team.owner.api.addCollaborator({ params: { appId: shared }, body: { email: account.email } })
    const collaborator = await service.createAccount()
    await account.api.addCollaborator({ params: { appId }, body: { email: collaborator.email } })
    const params = { organizationId: team.organizationId }
    const body = { email: 'new@example.com', role: 'viewer' as const }
    const { id: invitationId } = await account.api.createInvitation({ params, body })

    await account.api.deleteCurrentUser()
    await expect(account.api.getCurrentUser()).rejects.toMatchObject({ status: 401 })
    await expect(collaborator.api.getApp({ params: { appId } })).rejects.toMatchObject({ status: 404 })
    expect(await listRoles(service, team.organizationId)).toEqual({ [team.owner.userId]: 'owner' })
    expect(await team.owner.api.listCollaborators({ params: { appId: shared } })).toEqual([])
    const { invitations } = await team.owner.api.listInvitations({ params })
    expect(invitations.map(({ id, invited_by }) => [id, invited_by])).toEqual([[invitationId, undefined]])

    await removeOrganization(service.deps, { organizationId: account.organizationId })
    const left = await service.deps.db
      .selectFrom('organizations')
      .leftJoin('apps', 'apps.organization_id', 'organizations.id')
      .select('organizations.id')
      .where((eb) => eb.or([eb('organizations.id', '=', account.organizationId), eb('apps.id', '=', appId)]))
      .execute()
    expect(left).toEqual([])
  })

  it('leaves the e-mail free for another account', async () => {
    const { api, email } = await service.createAccount()
    await api.deleteCurrentUser()
    expect(await service.createAccount({ email })).toMatchObject({ email })
  })

  it('is refused while the account owns a team organization', async () => {
    const team = await createTeam(service)
    const params = { organizationId: team.organizationId }
    await expect(team.owner.api.deleteCurrentUser()).rejects.toMatchObject({
      status: 409,
      code: 'owns_team_organization',
      details: 'Acme',
    })
    expect(
      await team.owner.api.getOrganization({ params: { organizationId: team.owner.organizationId } }),
    ).toBeDefined()
    await team.owner.api.deleteOrganization({ params })
    await team.owner.api.deleteCurrentUser()
    expect(await exists(team.owner)).toBe(false)
    await removeOrganization(service.deps, params)
  })

  it('at the same time as a team organization is created leaves none without an owner', async () => {
    for (let round = 0; round < 20; round += 1) {
      const account = await service.createAccount()
      const name = `race ${round}`
      const [deleted, created] = await settle([
        account.api.deleteCurrentUser(),
        account.api.createOrganization({ body: { name } }),
      ])
      expect([deleted === 'done', created === 'done']).toContain(true)
      const teams = await service.deps.db
        .selectFrom('organizations')
        .leftJoin('organization_members as member', 'member.organization_id', 'organizations.id')
        .select(['member.user_id', 'member.role'])
        .where('organizations.name', '=', name)
        .execute()
      expect(teams).toEqual(created === 'done' ? [{ user_id: account.userId, role: 'owner' }] : [])
      expect(await exists(account)).toBe(deleted !== 'done')
    }
  })

  it('at the same time as an invitation is accepted leaves no trace of the account', async () => {
    const team = await createTeam(service)
    const params = { organizationId: team.organizationId }
    for (let round = 0; round < 20; round += 1) {
      const account = await service.createAccount()
      const body = { email: account.email, role: 'viewer' as const }
      const { id: invitationId } = await team.owner.api.createInvitation({ params, body })
      const [deleted, accepted] = await settle([
        account.api.deleteCurrentUser(),
        account.api.acceptInvitation({ params: { invitationId } }),
      ])
      expect(deleted).toBe('done')
      // 401: the key went with the account before it was looked at.
      expect(['done', 404, 401]).toContain(accepted)
      expect(await listRoles(service, team.organizationId)).toEqual({ [team.owner.userId]: 'owner' })
    }
  })

  it('is done once when asked twice at once', async () => {
    const account = await service.createAccount()
    const answers = await settle([account.api.deleteCurrentUser(), account.api.deleteCurrentUser()])
    expect(answers).toContain('done')
    expect([401, 404]).toContain(answers.find((answer) => answer !== 'done'))
  })
})
