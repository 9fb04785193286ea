import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { createMember, createServiceAccountClient, createTeam, listRoles, settle, untilSomebodyWaits } from './teams.ts'

const rounds = 20

let service: TestService

beforeAll(async () => {
  service = await createTestService()
})
afterAll(() => service.stop())

async function listOwners(organizationId: number): Promise<number[]> {
  const roles = await listRoles(service, organizationId)
  return Object.entries(roles).flatMap(([userId, role]) => (role === 'owner' ? [Number(userId)] : []))
}

describe('at the same time', () => {
  it('an owner who transfers to two members makes one of them the owner', async () => {
    const owner = await service.createAccount()
    for (let round = 0; round < rounds; round += 1) {
      const team = await createTeam(service, owner)
      const { organizationId } = team
      const heirs = [await createMember(service, team, 'admin'), await createMember(service, team, 'viewer')]
      const answers = await settle(
        heirs.map(({ userId }) =>
          owner.api.transferOwnership({ params: { organizationId }, body: { user_id: userId } }),
        ),
      )
      expect(answers.toSorted()).toEqual([403, 'done'])
      expect(await listOwners(organizationId)).toEqual([heirs[answers.indexOf('done')]?.userId])
    }
  })

  it('two admins who remove each other leave exactly one of them', async () => {
    const owner = await service.createAccount()
    for (let round = 0; round < rounds; round += 1) {
      const team = await createTeam(service, owner)
      const { organizationId } = team
      const ada = await createMember(service, team, 'admin')
      const bob = await createMember(service, team, 'admin')
      const answers = await settle([
        ada.api.removeOrganizationUser({ params: { organizationId, userId: bob.userId } }),
        bob.api.removeOrganizationUser({ params: { organizationId, userId: ada.userId } }),
      ])
      expect(answers.toSorted()).toEqual([404, 'done'])
      const left = answers[0] === 'done' ? ada : bob
      expect(await listRoles(service, organizationId)).toEqual({ [owner.userId]: 'owner', [left.userId]: 'admin' })
    }
  })

  it('the heir is removed or becomes the owner, never half of it', async () => {
    const owner = await service.createAccount()
    for (let round = 0; round < rounds; round += 1) {
      const team = await createTeam(service, owner)
      const { organizationId } = team
      const admin = await createMember(service, team, 'admin')
      const heir = await createMember(service, team, 'developer')
      const [transferred, removed] = await settle([
        owner.api.transferOwnership({ params: { organizationId }, body: { user_id: heir.userId } }),
        admin.api.removeOrganizationUser({ params: { organizationId, userId: heir.userId } }),
      ])
      expect([
        ['done', 403],
        [404, 'done'],
      ]).toContainEqual([transferred, removed])
      expect(await listOwners(organizationId)).toEqual([transferred === 'done' ? heir.userId : owner.userId])
    }
  })

  it('a role is changed and its member removed, and the member stays away', async () => {
    const owner = await service.createAccount()
    for (let round = 0; round < rounds; round += 1) {
      const team = await createTeam(service, owner)
      const member = await createMember(service, team, 'developer')
      const params = { organizationId: team.organizationId, userId: member.userId }
      const [changed, removed] = await settle([
        owner.api.updateOrganizationUser({ params, body: { role: 'admin' } }),
        owner.api.removeOrganizationUser({ params }),
      ])
      expect(removed).toBe('done')
      expect(['done', 404]).toContain(changed)
      expect(await listRoles(service, team.organizationId)).toEqual({ [owner.userId]: 'owner' })
    }
  })

  it('a member who is demoted adds nobody from then on', async () => {
    const owner = await service.createAccount()
    for (let round = 0; round < rounds; round += 1) {
      const team = await createTeam(service, owner)
      const { organizationId } = team
      const admin = await createMember(service, team, 'admin')
      const friend = await service.createAccount()
      const [added, demoted] = await settle([
        admin.api.addOrganizationUser({ params: { organizationId }, body: { email: friend.email, role: 'admin' } }),
        owner.api.updateOrganizationUser({
          params: { organizationId, userId: admin.userId },
          body: { role: 'viewer' },
        }),
      ])
      expect(demoted).toBe('done')
      expect(['done', 403]).toContain(added)
      expect(friend.userId in (await listRoles(service, organizationId))).toBe(added === 'done')
    }
  })

  it('an heir who deletes the account does not leave the organization without an owner', async () => {
    const owner = await service.createAccount()
    for (let round = 0; round < rounds; round += 1) {
      const team = await createTeam(service, owner)
      const { organizationId } = team
      const heir = await createMember(service, team, 'admin')
      const [transferred, deleted] = await settle([
        owner.api.transferOwnership({ params: { organizationId }, body: { user_id: heir.userId } }),
        heir.api.deleteCurrentUser(),
      ])
      expect([
        ['done', 409],
        [404, 'done'],
      ]).toContainEqual([transferred, deleted])
      expect(await listOwners(organizationId)).toEqual([transferred === 'done' ? heir.userId : owner.userId])
    }
  })

  it('the same account is added by many, once', async () => {
    const team = await createTeam(service)
    const { organizationId } = team
    for (let round = 0; round < rounds; round += 1) {
      const { email } = await service.createAccount()
      const body = { email, role: 'developer' as const }
      const requests = Array.from({ length: 4 }, () =>
        team.owner.api.addOrganizationUser({ params: { organizationId }, body }),
      )
      expect(await Promise.all(requests)).toEqual(Array(4).fill({ status: 'added' }))
    }
  })

  it('an app is moved into two organizations, and is in one', async () => {
    const owner = await service.createAccount()
    const [one, two] = [await createTeam(service, owner), await createTeam(service, owner)]
    for (let round = 0; round < rounds; round += 1) {
      const appId = await createTestApp(owner)
      const answers = await settle(
        [one, two].map(({ organizationId }) =>
          owner.api.transferApp({ params: { organizationId }, body: { app_id: appId } }),
        ),
      )
      expect(answers).toEqual(['done', 'done'])
      const { organization_id } = await service.deps.db
        .selectFrom('apps')
        .select('organization_id')
        .where('id', '=', appId)
        .executeTakeFirstOrThrow()
      expect([one.organizationId, two.organizationId]).toContain(organization_id)
    }
  })

  it('two apps are moved crosswise between two organizations, without a deadlock', async () => {
    const owner = await service.createAccount()
    const [one, two] = [await createTeam(service, owner), await createTeam(service, owner)]
    for (let round = 0; round < rounds; round += 1) {
      const [first, second] = [
        await createTestApp({ ...owner, organizationId: one.organizationId }),
        await createTestApp({ ...owner, organizationId: two.organizationId }),
      ]
      const answers = await settle([
        owner.api.transferApp({ params: { organizationId: two.organizationId }, body: { app_id: first } }),
        owner.api.transferApp({ params: { organizationId: one.organizationId }, body: { app_id: second } }),
      ])
      expect(answers).toEqual(['done', 'done'])
    }
  })
})

describe('a service account that loses its role while its request waits', () => {
  it('is refused', async () => {
    const team = await createTeam(service)
    const { organizationId } = team
    const member = await createMember(service, team, 'viewer')
    const machine = await createServiceAccountClient(service, team, 'admin')
    // Holds the organization until the request waits for it, that is after the request was let in.
    const waiting = await service.deps.db.transaction().execute(async (trx) => {
      await trx.selectFrom('organizations').select('id').where('id', '=', organizationId).forUpdate().execute()
      const request = settle([
        machine.api.removeOrganizationUser({ params: { organizationId, userId: member.userId } }),
      ])
      await untilSomebodyWaits(service)
      await trx.updateTable('service_accounts').set({ role: 'viewer' }).where('id', '=', machine.id).execute()
      return { request }
    })
    expect(await waiting.request).toEqual([403])
    expect(await listRoles(service, organizationId)).toMatchObject({ [member.userId]: 'viewer' })
  })
})
