import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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
})
