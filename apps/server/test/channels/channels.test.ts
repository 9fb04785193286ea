import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, createTestRelease, findChannelId } from '../support/publishing.ts'
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

describe('POST /api/v1/apps/{appId}/channels', () => {
  it('creates a channel with any name', async () => {
    const channel = await owner.api.createChannel({ params: { appId }, body: { channel: 'beta / Zürich 🎯' } })
    expect(channel).toEqual({ id: expect.any(Number), app_id: appId, name: 'beta / Zürich 🎯' })
    expect(await owner.api.listChannels({ params: { appId } })).toContainEqual(channel)
  })

  it('refuses a name that the app has, even when asked twice at once', async () => {
    const body = { channel: 'twice' }
    const answers = await Promise.allSettled([
      owner.api.createChannel({ params: { appId }, body }),
      owner.api.createChannel({ params: { appId }, body }),
    ])
    expect(answers.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    await expect(owner.api.createChannel({ params: { appId }, body })).rejects.toMatchObject({
      status: 409,
      code: 'channel_exists',
    })
  })
})

describe('DELETE /api/v1/apps/{appId}/channels/{channelId}', () => {
  it('takes its patches off it', async () => {
    const channel = await owner.api.createChannel({ params: { appId }, body: { channel: 'short-lived' } })
    const releaseId = await createTestRelease(owner.api, appId)
    const patch = await owner.api.createPatch({ params: { appId }, body: { release_id: releaseId } })
    await owner.api.promotePatch({ params: { appId }, body: { patch_id: patch.id, channel_id: channel.id } })
    await owner.api.deleteChannel({ params: { appId, channelId: channel.id } })
    const { patches } = await owner.api.listReleasePatches({ params: { appId, releaseId } })
    expect(patches).toMatchObject([{ id: patch.id }])
    expect(patches[0]).not.toHaveProperty('channel')
  })

  it('refuses stable', async () => {
    const channelId = await findChannelId(owner.api, appId)
    await expect(owner.api.deleteChannel({ params: { appId, channelId } })).rejects.toMatchObject({
      status: 409,
      code: 'channel_is_default',
    })
  })

  it('does not find the channel of another app', async () => {
    const other = await createTestApp(owner)
    const channelId = await findChannelId(owner.api, other)
    await expect(owner.api.deleteChannel({ params: { appId, channelId } })).rejects.toMatchObject({ status: 404 })
  })
})
