import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, createTestRelease, uploadTestReleaseArtifact } from '../support/publishing.ts'
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

function getRelease(releaseId: number) {
  return owner.api.getRelease({ params: { appId, releaseId } }).then(({ release }) => release)
}

describe('POST /api/v1/apps/{appId}/releases', () => {
  it('creates a release without platforms', async () => {
    const { release } = await owner.api.createRelease({
      params: { appId },
      body: { version: '1.2.3+4', flutter_revision: 'abc', flutter_version: '3.35.1', display_name: null },
    })
    expect(release).toEqual({
      id: expect.any(Number),
      app_id: appId,
      version: '1.2.3+4',
      flutter_revision: 'abc',
      flutter_version: '3.35.1',
      platform_statuses: {},
      created_at: expect.stringMatching(/Z$/),
      updated_at: expect.stringMatching(/Z$/),
    })
    expect(await getRelease(release.id)).toEqual(release)
  })

  it('refuses a version that the app has, even when asked twice at once', async () => {
    const create = () => createTestRelease(owner.api, appId, '7.7.7')
    const answers = await Promise.allSettled([create(), create()])
    expect(answers.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    await expect(create()).rejects.toMatchObject({ status: 409, code: 'release_version_exists' })
  })

  it('lets another app have the same version', async () => {
    const other = await createTestApp(owner)
    await createTestRelease(owner.api, other, '7.7.7')
  })
})

describe('PATCH /api/v1/apps/{appId}/releases/{releaseId}', () => {
  it('keeps a status per platform and lets a draft follow an active one', async () => {
    const releaseId = await createTestRelease(owner.api, appId, '2.0.0')
    const set = (platform: 'android' | 'ios', status: 'draft' | 'active') =>
      owner.api.updateRelease({
        params: { appId, releaseId },
        body: { status, platform, metadata: status === 'active' ? { cli: '1.6.119' } : null, notes: null },
      })
    await set('android', 'draft')
    await set('android', 'draft')
    await set('android', 'active')
    await set('ios', 'draft')
    expect((await getRelease(releaseId)).platform_statuses).toEqual({ android: 'active', ios: 'draft' })
    await set('android', 'draft')
    expect((await getRelease(releaseId)).platform_statuses).toEqual({ android: 'draft', ios: 'draft' })
    const { metadata } = await service.deps.db
      .selectFrom('release_platforms')
      .select('metadata')
      .where('release_id', '=', releaseId)
      .where('platform', '=', 'android')
      .executeTakeFirstOrThrow()
    expect(metadata).toEqual({ cli: '1.6.119' })
  })

  it('keeps notes on null and absence, changes them on text, clears them on the empty text', async () => {
    const releaseId = await createTestRelease(owner.api, appId, '2.0.1')
    const update = (body: object) => owner.api.updateRelease({ params: { appId, releaseId }, body })
    await update({ notes: 'fixes the map' })
    await update({ status: null, platform: null, metadata: null, notes: null })
    await update({})
    expect(await getRelease(releaseId)).toMatchObject({ notes: 'fixes the map' })
    await update({ notes: '' })
    expect(await getRelease(releaseId)).not.toHaveProperty('notes')
  })

  it('moves updated_at, by which clients find the latest release', async () => {
    const releaseId = await createTestRelease(owner.api, appId, '2.0.2')
    const before = await getRelease(releaseId)
    await owner.api.updateRelease({ params: { appId, releaseId }, body: { notes: 'x' } })
    const after = await getRelease(releaseId)
    expect(Date.parse(after.updated_at)).toBeGreaterThan(Date.parse(before.updated_at))
    expect(after.created_at).toBe(before.created_at)
  })
})

describe('GET /api/v1/apps/{appId}/releases', () => {
  it('lists all releases, newest first, and an empty list where there is none', async () => {
    const app = await createTestApp(owner)
    expect(await owner.api.listReleases({ params: { appId: app } })).toEqual({ releases: [] })
    for (const version of ['1.0.0', '1.0.1', '1.0.2']) await createTestRelease(owner.api, app, version)
    const { releases } = await owner.api.listReleases({ params: { appId: app } })
    expect(releases.map(({ version }) => version)).toEqual(['1.0.2', '1.0.1', '1.0.0'])
  })

  it('with sideloadable lists only what can be previewed, platform by platform', async () => {
    const app = await createTestApp(owner)
    const releaseId = await createTestRelease(owner.api, app, '1.0.0')
    await createTestRelease(owner.api, app, '2.0.0')
    const params = { appId: app, releaseId }
    await uploadTestReleaseArtifact(owner.api, params, { platform: 'android', arch: 'aab', canSideload: true })
    await uploadTestReleaseArtifact(owner.api, params, { platform: 'ios', arch: 'runner', canSideload: false })
    for (const platform of ['android', 'ios'] as const) {
      await owner.api.updateRelease({ params, body: { status: 'active', platform } })
    }
    const list = (sideloadable?: 'true' | 'false') =>
      owner.api.listReleases({ params: { appId: app }, query: sideloadable === undefined ? {} : { sideloadable } })
    const { releases } = await list('true')
    expect(releases.map(({ version, platform_statuses }) => ({ version, platform_statuses }))).toEqual([
      { version: '1.0.0', platform_statuses: { android: 'active' } },
    ])
    expect(await list('false')).toEqual(await list())
    expect((await list()).releases).toHaveLength(2)
  })
})

describe('DELETE /api/v1/apps/{appId}/releases/{releaseId}', () => {
  it('removes the release with its patches', async () => {
    const releaseId = await createTestRelease(owner.api, appId, '3.0.0')
    await owner.api.createPatch({ params: { appId }, body: { release_id: releaseId } })
    await owner.api.deleteRelease({ params: { appId, releaseId } })
    await expect(getRelease(releaseId)).rejects.toMatchObject({ status: 404, code: 'not_found' })
    await expect(owner.api.deleteRelease({ params: { appId, releaseId } })).rejects.toMatchObject({ status: 404 })
    await createTestRelease(owner.api, appId, '3.0.0')
  })

  it('does not find the release of another app', async () => {
    const releaseId = await createTestRelease(owner.api, appId, '3.0.1')
    const other = await createTestApp(owner)
    await expect(owner.api.deleteRelease({ params: { appId: other, releaseId } })).rejects.toMatchObject({
      status: 404,
    })
    await expect(
      owner.api.updateRelease({ params: { appId: other, releaseId }, body: { notes: 'x' } }),
    ).rejects.toMatchObject({ status: 404 })
    expect(await getRelease(releaseId)).not.toHaveProperty('notes')
  })
})
