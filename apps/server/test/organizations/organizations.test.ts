import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { createMember, createServiceAccountClient, createTeam, listRoles, setPlan, type Team } from './teams.ts'

const now = new Date('2026-11-21T12:00:00Z')

let service: TestService
let team: Team
let stranger: TestAccount

beforeAll(async () => {
  service = await createTestService({ clock: () => now })
  team = await createTeam(service)
  stranger = await service.createAccount()
})
afterAll(() => service.stop())

describe('POST /api/v1/organizations', () => {
  it('makes the caller the owner of a team organization', async () => {
    const account = await service.createAccount()
    const organization = await account.api.createOrganization({ body: { name: 'Globex' } })
    expect(organization).toMatchObject({ name: 'Globex', organization_type: 'team' })
    const { organizations } = await account.api.listOrganizations()
    expect(organizations).toContainEqual({ organization, role: 'owner' })
  })

  it.each(['', 'x'.repeat(129), 'a\0b'])('refuses the name %j', async (name) => {
    await expect(stranger.api.createOrganization({ body: { name } })).rejects.toMatchObject({
      status: 400,
      details: expect.stringContaining('name:'),
    })
  })

  it('needs a plan with team organizations', async () => {
    const account = await service.createAccount()
    await setPlan(service, account, 'free')
    await expect(account.api.createOrganization({ body: { name: 'Acme' } })).rejects.toMatchObject({
      status: 403,
      code: 'plan_required',
    })
    await setPlan(service, account, 'pro')
    expect(await account.api.createOrganization({ body: { name: 'Acme' } })).toMatchObject({ name: 'Acme' })
  })

  it('is not for service accounts', async () => {
    const { api } = await createServiceAccountClient(service, team, 'admin')
    await expect(api.createOrganization({ body: { name: 'Acme' } })).rejects.toMatchObject({ status: 403 })
  })
})

describe('GET and PATCH /api/v1/organizations/{organizationId}', () => {
  it('renames a team and a personal organization', async () => {
    for (const organizationId of [team.organizationId, team.owner.organizationId]) {
      const params = { organizationId }
      await team.owner.api.updateOrganization({ params, body: { name: 'Renamed' } })
      expect(await team.owner.api.getOrganization({ params })).toMatchObject({
        id: organizationId,
        name: 'Renamed',
        updated_at: now.toISOString(),
      })
    }
  })

  it('refuses members without the right, and hides from strangers', async () => {
    const params = { organizationId: team.organizationId }
    const manager = await createMember(service, team, 'appManager')
    expect(await manager.api.getOrganization({ params })).toMatchObject({ id: team.organizationId })
    await expect(manager.api.updateOrganization({ params, body: { name: 'x' } })).rejects.toMatchObject({ status: 403 })
    await expect(stranger.api.getOrganization({ params })).rejects.toMatchObject({ status: 404 })
    await expect(stranger.api.updateOrganization({ params, body: { name: 'x' } })).rejects.toMatchObject({
      status: 404,
    })
    await expect(team.owner.api.updateOrganization({ params, body: { name: '' } })).rejects.toMatchObject({
      status: 400,
    })
  })
})

describe('POST /api/v1/organizations/{organizationId}/transfer-ownership', () => {
  it('makes a member the owner and the owner an admin', async () => {
    const { owner, organizationId } = await createTeam(service)
    const heir = await createMember(service, { owner, organizationId }, 'viewer')
    const transfer = { params: { organizationId }, body: { user_id: heir.userId } }
    await owner.api.transferOwnership(transfer)
    expect(await listRoles(service, organizationId)).toEqual({ [owner.userId]: 'admin', [heir.userId]: 'owner' })
    await expect(owner.api.transferOwnership(transfer)).rejects.toMatchObject({ status: 403 })
    await heir.api.transferOwnership(transfer)
    expect(await listRoles(service, organizationId)).toEqual({ [owner.userId]: 'admin', [heir.userId]: 'owner' })
  })

  it('is only to members', async () => {
    const params = { organizationId: team.organizationId }
    for (const user_id of [stranger.userId, 999_999_999]) {
      await expect(team.owner.api.transferOwnership({ params, body: { user_id } })).rejects.toMatchObject({
        status: 404,
        code: 'user_not_found',
      })
    }
    await expect(team.owner.api.transferOwnership({ params, body: { user_id: -1 } })).rejects.toMatchObject({
      status: 400,
    })
  })

  it('is refused to an admin, to a service account, and for a personal organization', async () => {
    const params = { organizationId: team.organizationId }
    const admin = await createMember(service, team, 'admin')
    const body = { user_id: admin.userId }
    const machine = await createServiceAccountClient(service, team, 'admin')
    await expect(admin.api.transferOwnership({ params, body })).rejects.toMatchObject({ status: 403 })
    await expect(machine.api.transferOwnership({ params, body })).rejects.toMatchObject({ status: 403 })
    await expect(stranger.api.transferOwnership({ params, body })).rejects.toMatchObject({ status: 404 })
    const personal = { organizationId: team.owner.organizationId }
    await expect(
      team.owner.api.transferOwnership({ params: personal, body: { user_id: team.owner.userId } }),
    ).rejects.toMatchObject({ status: 409, code: 'organization_is_personal' })
  })
})

describe('GET /api/v1/organizations/{organizationId}/usage', () => {
  const insertEvent = async (appId: string, type: string, receivedAt: string, clientId: string) => {
    const event = { release_version: '1', patch_number: 1, platform: 'android', arch: 'arm', message: null }
    await service.deps.db
      .insertInto('device_events')
      .values({
        ...event,
        app_id: appId,
        client_id: clientId,
        type,
        occurred_at: new Date(receivedAt),
        received_at: new Date(receivedAt),
      })
      .execute()
  }

  it('counts the patch installs that were received within the month, by app', async () => {
    const { owner, organizationId } = await createTeam(service)
    const used = await createTestApp({ api: owner.api, organizationId }, 'Used')
    const unused = await createTestApp({ api: owner.api, organizationId }, 'Unused')
    const foreign = await createTestApp(owner, 'Foreign')
    const install = '__patch_install__'
    await insertEvent(used, install, '2026-11-01T00:00:00.000Z', 'first instant')
    await insertEvent(used, install, '2026-11-30T23:59:59.999Z', 'last instant')
    await insertEvent(used, install, '2026-10-31T23:59:59.999Z', 'before')
    await insertEvent(used, install, '2026-12-01T00:00:00.000Z', 'after')
    await insertEvent(used, '__patch_download__', '2026-11-05T00:00:00.000Z', 'no install')
    await insertEvent(foreign, install, '2026-11-05T00:00:00.000Z', 'another organization')
    const params = { organizationId }
    expect(await owner.api.getOrganizationUsage({ params })).toEqual({
      apps: [
        { id: used, name: 'Used', patch_install_count: 2 },
        { id: unused, name: 'Unused', patch_install_count: 0 },
      ],
      patch_install_count: 2,
      period_start: '2026-11-01T00:00:00.000Z',
      period_end: '2026-12-01T00:00:00.000Z',
    })
    await expect(stranger.api.getOrganizationUsage({ params })).rejects.toMatchObject({ status: 404 })
  })
})
