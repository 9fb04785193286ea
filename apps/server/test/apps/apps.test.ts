import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { removeDeviceEvents } from '../../src/devices/remove-device-events.ts'
import { insertMember } from '../../src/organizations/queries.ts'
import {
  createTestApp,
  createTestRelease,
  registerTestReleaseArtifact,
  uploadTestReleaseArtifact,
} from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let owner: TestAccount

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
})
afterAll(() => service.stop())

describe('POST /api/v1/apps', () => {
  it('creates an app with the channel stable', async () => {
    const app = await owner.api.createApp({
      body: { display_name: 'Atlas', organization_id: owner.organizationId },
    })
    expect(app).toEqual({ id: expect.stringMatching(/^[0-9a-f-]{36}$/), display_name: 'Atlas' })
    const channels = await owner.api.listChannels({ params: { appId: app.id } })
    expect(channels).toEqual([{ id: expect.any(Number), app_id: app.id, name: 'stable' }])
  })

  it('takes 128 characters as a name and refuses 129', async () => {
    const create = (length: number) =>
      owner.api.createApp({ body: { display_name: 'x'.repeat(length), organization_id: owner.organizationId } })
    expect((await create(128)).display_name).toHaveLength(128)
    await expect(create(129)).rejects.toMatchObject({
      status: 400,
      details: expect.stringContaining('display_name'),
    })
  })

  it('parses JSON that is sent as text/plain', async () => {
    const response = await fetch(`${service.baseUrl}/api/v1/apps`, {
      method: 'POST',
      headers: { authorization: `Bearer ${owner.apiKey}`, 'content-type': 'text/plain; charset=utf-8' },
      body: JSON.stringify({ display_name: 'Plain', organization_id: owner.organizationId }),
    })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ display_name: 'Plain' })
  })

  it('tolerates the double slash of a base URL with a trailing slash', async () => {
    const response = await fetch(`${service.baseUrl}//api/v1/apps`, {
      headers: { authorization: `Bearer ${owner.apiKey}` },
    })
    expect(response.status).toBe(200)
  })
})

describe('GET /api/v1/apps', () => {
  it('lists what the caller sees as a member and as a collaborator, and nothing else', async () => {
    const member = await service.createAccount()
    const own = await createTestApp(member, 'Own')
    const shared = await createTestApp(owner, 'Shared')
    await createTestApp(owner, 'Hidden')
    await owner.api.addCollaborator({ params: { appId: shared }, body: { email: member.email } })
    const { apps } = await member.api.listApps()
    expect(apps.map((app) => app.app_id)).toEqual([own, shared])
  })

  it('is an empty list, not a 404, when there is none', async () => {
    const nobody = await service.createAccount()
    expect(await nobody.api.listApps()).toEqual({ apps: [] })
  })
})

describe('GET /api/v1/apps/{appId}', () => {
  it('leaves out what a new app does not have', async () => {
    const appId = await createTestApp(owner, 'Fresh')
    const app = await owner.api.getApp({ params: { appId } })
    expect(app).toEqual({
      app_id: appId,
      display_name: 'Fresh',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      updated_at: expect.stringMatching(/Z$/),
      platforms: [],
      latest_releases: {},
      pending_releases: {},
    })
  })

  it('tells the newest release, its highest patch, and the platforms with uploaded artifacts', async () => {
    const appId = await createTestApp(owner)
    const first = await createTestRelease(owner.api, appId, '1.0.0')
    const second = await createTestRelease(owner.api, appId, '2.0.0')
    await uploadTestReleaseArtifact(owner.api, { appId, releaseId: first }, { platform: 'ios', arch: 'xcarchive' })
    await uploadTestReleaseArtifact(owner.api, { appId, releaseId: first })
    await uploadTestReleaseArtifact(owner.api, { appId, releaseId: second })
    await registerTestReleaseArtifact(owner.api, { appId, releaseId: second }, { platform: 'windows' })
    await owner.api.createPatch({ params: { appId }, body: { release_id: second } })
    await owner.api.createPatch({ params: { appId }, body: { release_id: second } })
    expect(await owner.api.getApp({ params: { appId } })).toMatchObject({
      latest_release_version: '2.0.0',
      latest_patch_number: 2,
      platforms: ['android', 'ios'],
      pending_releases: { android: { id: second, version: '2.0.0' }, ios: { id: first, version: '1.0.0' } },
    })
  })
})

describe('PATCH /api/v1/apps/{appId}', () => {
  it('renames', async () => {
    const appId = await createTestApp(owner, 'Before')
    await owner.api.updateApp({ params: { appId }, body: { display_name: 'After' } })
    expect(await owner.api.getApp({ params: { appId } })).toMatchObject({ display_name: 'After' })
  })
})

describe('DELETE /api/v1/apps/{appId}', () => {
  it('removes the app with everything below it, and has its bytes removed', async () => {
    const appId = await createTestApp(owner)
    const releaseId = await createTestRelease(owner.api, appId)
    await uploadTestReleaseArtifact(owner.api, { appId, releaseId })
    await owner.api.deleteApp({ params: { appId } })
    await expect(owner.api.getApp({ params: { appId } })).rejects.toMatchObject({ status: 404 })
    await expect(owner.api.deleteApp({ params: { appId } })).rejects.toMatchObject({ status: 404 })
    const rows = await service.deps.db.selectFrom('releases').select('id').where('app_id', '=', appId).execute()
    expect(rows).toEqual([])
  })
})

describe('an app that is deleted while others work below it', () => {
  it('answers them 200 or 404, never a fault', async () => {
    const person = await service.createAccount()
    for (let round = 0; round < 5; round += 1) {
      const params = { appId: await createTestApp(owner) }
      const work = Array.from({ length: 6 }, (_, index) => [
        owner.api.createRelease({ params, body: { version: `${index}`, flutter_revision: 'r' } }),
        owner.api.createChannel({ params, body: { channel: `${index}` } }),
        owner.api.addCollaborator({ params, body: { email: person.email } }),
      ]).flat()
      const answers = await Promise.allSettled([...work, owner.api.deleteApp({ params })])
      const refused = answers.filter((answer) => answer.status === 'rejected').map(({ reason }) => reason.status)
      expect(new Set([404, ...refused])).toEqual(new Set([404]))
    }
  })

  it('takes what its devices reported with it, in a job', async () => {
    const appId = await createTestApp(owner)
    const event = { app_id: appId, arch: 'arm', client_id: 'c', type: 't', patch_number: 1, release_version: '1' }
    for (const timestamp of [1, 2, 3]) {
      await service.client().createPatchEvent({ body: { event: { ...event, platform: 'android', timestamp } } })
    }
    await owner.api.deleteApp({ params: { appId } })
    await removeDeviceEvents(service.deps.db, { appId })
    const events = await service.deps.db.selectFrom('device_events').select('id').where('app_id', '=', appId).execute()
    expect(events).toEqual([])
  })
})

describe('GET /api/v1/organizations', () => {
  it('lists the personal organization with its owner, and those of shared apps with role none', async () => {
    const outsider = await service.createAccount()
    const shared = await createTestApp(owner, 'Shared')
    await owner.api.addCollaborator({ params: { appId: shared }, body: { email: outsider.email } })
    const { organizations } = await outsider.api.listOrganizations()
    expect(
      organizations.map(({ organization, role }) => [organization.id, organization.organization_type, role]),
    ).toEqual([
      [owner.organizationId, 'personal', 'none'],
      [outsider.organizationId, 'personal', 'owner'],
    ])
  })

  it('shows an outsider only its own apps of the organization, and not the members', async () => {
    const outsider = await service.createAccount()
    const shared = await createTestApp(owner, 'Shared too')
    await owner.api.addCollaborator({ params: { appId: shared }, body: { email: outsider.email } })
    const params = { organizationId: owner.organizationId }
    const { apps } = await outsider.api.listOrganizationApps({ params })
    expect(apps.map((app) => app.app_id)).toEqual([shared])
    await expect(outsider.api.listOrganizationUsers({ params })).rejects.toMatchObject({ status: 403 })
  })

  it('lists members with their roles, and gives them all apps', async () => {
    const boss = await service.createAccount()
    const viewer = await service.createAccount()
    const appId = await createTestApp(boss)
    await insertMember(service.deps.db, { organizationId: boss.organizationId, userId: viewer.userId, role: 'viewer' })
    const params = { organizationId: boss.organizationId }
    const { users } = await viewer.api.listOrganizationUsers({ params })
    expect(users).toEqual([
      { user: { id: boss.userId, email: boss.email }, role: 'owner' },
      { user: { id: viewer.userId, email: viewer.email }, role: 'viewer' },
    ])
    expect((await viewer.api.listOrganizationApps({ params })).apps.map((app) => app.app_id)).toEqual([appId])
  })
})
