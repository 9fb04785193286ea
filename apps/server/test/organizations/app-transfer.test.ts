import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { createMember, createServiceAccountClient, createTeam, type Team } from './teams.ts'

let service: TestService
let team: Team
let owner: TestAccount
let params: { organizationId: number }

beforeAll(async () => {
  service = await createTestService()
  team = await createTeam(service)
  owner = team.owner
  params = { organizationId: team.organizationId }
})
afterAll(() => service.stop())

describe('POST /api/v1/organizations/{organizationId}/apps', () => {
  it('moves an app with its collaborators and invitations, and changes nothing when repeated', async () => {
    const appId = await createTestApp(owner)
    const collaborator = await service.createAccount()
    const invited = await service.createAccount()
    const bystander = await createMember(service, team, 'viewer')
    await owner.api.addCollaborator({ params: { appId }, body: { email: collaborator.email } })
    const { id: invitationId } = await owner.api.createInvitation({
      params: { organizationId: owner.organizationId },
      body: { email: invited.email, role: 'admin', app_id: appId },
    })
    const transfer = { params, body: { app_id: appId } }
    await owner.api.transferApp(transfer)
    await owner.api.transferApp(transfer)

    expect(await bystander.api.getApp({ params: { appId } })).toMatchObject({ app_id: appId })
    expect((await owner.api.listOrganizationApps({ params: { organizationId: owner.organizationId } })).apps).toEqual(
      [],
    )
    expect(await collaborator.api.getApp({ params: { appId } })).toMatchObject({ app_id: appId })
    const { invitations } = await owner.api.listInvitations({ params })
    expect(invitations).toMatchObject([{ id: invitationId, organization_id: team.organizationId, app_id: appId }])
    await invited.api.acceptInvitation({ params: { invitationId } })
    expect(await invited.api.getApp({ params: { appId } })).toMatchObject({ app_id: appId })
  })

  it('needs the right in the organization that the app comes from', async () => {
    const host = await service.createAccount()
    const appId = await createTestApp(host)
    const transfer = { params, body: { app_id: appId } }
    await expect(owner.api.transferApp(transfer)).rejects.toMatchObject({ status: 404, code: 'not_found' })
    await host.api.addCollaborator({ params: { appId }, body: { email: owner.email } })
    await host.api.updateCollaborator({ params: { appId, collaboratorId: owner.userId }, body: { role: 'admin' } })
    await expect(owner.api.transferApp(transfer)).rejects.toMatchObject({ status: 403 })
    expect(await host.api.getApp({ params: { appId } })).toMatchObject({ app_id: appId })
  })

  it('needs the right in the organization that the app goes to', async () => {
    const manager = await createMember(service, team, 'appManager')
    const stranger = await service.createAccount()
    for (const [mover, status] of [
      [manager, 403],
      [stranger, 404],
    ] as const) {
      const appId = await createTestApp(mover)
      await expect(mover.api.transferApp({ params, body: { app_id: appId } })).rejects.toMatchObject({ status })
    }
  })

  it('is nothing for a service account, which has one organization', async () => {
    const machine = await createServiceAccountClient(service, team, 'admin')
    const appId = await createTestApp(owner)
    await expect(machine.api.transferApp({ params, body: { app_id: appId } })).rejects.toMatchObject({ status: 404 })
  })

  it('names the field that is wrong', async () => {
    await expect(owner.api.transferApp({ params, body: { app_id: '' } })).rejects.toMatchObject({
      status: 400,
      details: expect.stringContaining('app_id:'),
    })
    await expect(owner.api.transferApp({ params, body: { app_id: 'nothing' } })).rejects.toMatchObject({ status: 404 })
  })
})
