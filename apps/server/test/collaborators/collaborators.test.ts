import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createMember, createTeam, setUnverified } from '../organizations/teams.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let owner: TestAccount
let appId: string

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
  appId = await createTestApp(owner)
})
afterAll(() => service.stop())

describe('collaborators', () => {
  it('are added by e-mail in any case as developers, changed, and removed', async () => {
    const person = await service.createAccount({ email: 'Grace@Example.com' })
    const params = { appId, collaboratorId: person.userId }
    await owner.api.addCollaborator({ params: { appId }, body: { email: 'grace@example.COM' } })
    const developer = { user_id: person.userId, email: 'Grace@Example.com', role: 'developer' }
    expect(await owner.api.listCollaborators({ params: { appId } })).toEqual([developer])

    await owner.api.updateCollaborator({ params, body: { role: 'admin' } })
    await owner.api.addCollaborator({ params: { appId }, body: { email: person.email } })
    expect(await owner.api.listCollaborators({ params: { appId } })).toEqual([{ ...developer, role: 'admin' }])
    await person.api.updateApp({ params: { appId }, body: { display_name: 'By an admin' } })

    await owner.api.removeCollaborator({ params })
    expect(await owner.api.listCollaborators({ params: { appId } })).toEqual([])
    await expect(person.api.getApp({ params: { appId } })).rejects.toMatchObject({ status: 404 })
  })

  it('must have an account', async () => {
    await expect(
      owner.api.addCollaborator({ params: { appId }, body: { email: 'nobody@example.com' } }),
    ).rejects.toMatchObject({ status: 404, code: 'user_not_found' })
  })

  it('are not found when they are none', async () => {
    const stranger = await service.createAccount()
    const params = { appId, collaboratorId: stranger.userId }
    await expect(owner.api.updateCollaborator({ params, body: { role: 'admin' } })).rejects.toMatchObject({
      status: 404,
    })
    await expect(owner.api.removeCollaborator({ params })).rejects.toMatchObject({ status: 404 })
  })

  it('must have shown that the e-mail is theirs', async () => {
    const person = await service.createAccount()
    await setUnverified(service, person)
    await expect(owner.api.addCollaborator({ params: { appId }, body: { email: person.email } })).rejects.toMatchObject(
      {
        status: 404,
        code: 'user_not_found',
      },
    )
    await expect(person.api.getApp({ params: { appId } })).rejects.toMatchObject({ status: 404 })
  })

  it('do not come back by an invitation of before, once they were added and removed', async () => {
    const person = await service.createAccount()
    const params = { organizationId: owner.organizationId }
    const body = { email: person.email, role: 'admin' as const, app_id: appId }
    const { id: invitationId } = await owner.api.createInvitation({ params, body })
    await owner.api.addCollaborator({ params: { appId }, body: { email: person.email } })
    await owner.api.removeCollaborator({ params: { appId, collaboratorId: person.userId } })
    await person.api.acceptInvitation({ params: { invitationId } })
    await expect(person.api.getApp({ params: { appId } })).rejects.toMatchObject({ status: 404 })
  })

  it('of one app say nothing about another app', async () => {
    const person = await service.createAccount()
    const other = await createTestApp(owner)
    await owner.api.addCollaborator({ params: { appId: other }, body: { email: person.email } })
    const params = { appId, collaboratorId: person.userId }
    await expect(owner.api.updateCollaborator({ params, body: { role: 'admin' } })).rejects.toMatchObject({
      status: 404,
    })
    await expect(owner.api.removeCollaborator({ params })).rejects.toMatchObject({ status: 404 })
  })
})

describe('collaborator admins at the same time', () => {
  it('who remove each other leave exactly one', async () => {
    for (let round = 0; round < 20; round += 1) {
      const admins = [await service.createAccount(), await service.createAccount()] as const
      for (const { email, userId } of admins) {
        await owner.api.addCollaborator({ params: { appId }, body: { email } })
        await owner.api.updateCollaborator({ params: { appId, collaboratorId: userId }, body: { role: 'admin' } })
      }
      const [ada, bob] = admins
      const answers = await Promise.allSettled([
        ada.api.removeCollaborator({ params: { appId, collaboratorId: bob.userId } }),
        bob.api.removeCollaborator({ params: { appId, collaboratorId: ada.userId } }),
      ])
      expect(answers.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
      const left = answers[0].status === 'fulfilled' ? ada : bob
      const rest = (await owner.api.listCollaborators({ params: { appId } })).map(({ user_id }) => user_id)
      expect(rest).toEqual([left.userId])
      await owner.api.removeCollaborator({ params: { appId, collaboratorId: left.userId } })
    }
  })

  it('are not added by a manager who has just been removed', async () => {
    const team = await createTeam(service)
    const params = { appId: await createTestApp({ ...team.owner, organizationId: team.organizationId }) }
    for (let round = 0; round < 20; round += 1) {
      const manager = await createMember(service, team, 'appManager')
      const friend = await service.createAccount()
      const [added, removed] = await Promise.allSettled([
        manager.api.addCollaborator({ params, body: { email: friend.email } }),
        team.owner.api.removeOrganizationUser({
          params: { organizationId: team.organizationId, userId: manager.userId },
        }),
      ])
      expect(removed.status).toBe('fulfilled')
      if (added.status === 'rejected') expect(added.reason).toMatchObject({ status: 404 })
      const ids = (await team.owner.api.listCollaborators({ params })).map(({ user_id }) => user_id)
      expect(ids.includes(friend.userId)).toBe(added.status === 'fulfilled')
    }
  })
})
