import { type Plan, type PlanFeature, planFeatures } from '@godwit/contract'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createMember, createTeam, listRoles, setPlan } from '../organizations/teams.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

const plans: Plan[] = ['free', 'pro', 'business', 'enterprise']
const refused = { status: 403, code: 'plan_required' }

let service: TestService

beforeAll(async () => {
  service = await createTestService({ config: { defaultPlan: 'business' } })
})
afterAll(() => service.stop())

const has = (plan: Plan, feature: PlanFeature) => planFeatures[plan].has(feature)

/** Passes when the plan has the feature, and expects the refusal when it has not. */
async function expectAllowed(isAllowed: boolean, request: Promise<unknown>): Promise<void> {
  if (isAllowed) await request
  else await expect(request).rejects.toMatchObject(refused)
}

describe('GET /api/v1/plan', () => {
  it('tells the plan of the caller, or the default, and what it includes', async () => {
    const account = await service.createAccount()
    expect(await account.api.getPlan()).toEqual({
      plan: 'business',
      features: ['team_organizations', 'collaborators', 'all_roles', 'trust_rules'],
    })
    await setPlan(service, account, 'free')
    expect(await account.api.getPlan()).toEqual({ plan: 'free', features: [] })
  })
})

describe('GET /api/v1/organizations/{organizationId}/plan', () => {
  it("tells the owner's plan, also after the ownership has changed", async () => {
    const team = await createTeam(service)
    const params = { organizationId: team.organizationId }
    const member = await createMember(service, team, 'viewer')
    await setPlan(service, team.owner, 'enterprise')
    expect(await member.api.getOrganizationPlan({ params })).toMatchObject({ plan: 'enterprise' })
    await team.owner.api.transferOwnership({ params, body: { user_id: member.userId } })
    expect(await member.api.getOrganizationPlan({ params })).toMatchObject({ plan: 'business' })
    const stranger = await service.createAccount()
    await expect(stranger.api.getOrganizationPlan({ params })).rejects.toMatchObject({ status: 404 })
  })
})

describe.each(plans)('with the plan %s', (plan) => {
  const createTeamWithPlan = async () => {
    const team = await createTeam(service)
    await setPlan(service, team.owner, plan)
    return { ...team, params: { organizationId: team.organizationId } }
  }

  it('team organizations are created and get members, or not', async () => {
    const { owner, params } = await createTeamWithPlan()
    const isAllowed = has(plan, 'team_organizations')
    await expectAllowed(isAllowed, owner.api.createOrganization({ body: { name: 'Acme' } }))
    const body = { email: (await service.createAccount()).email, role: 'developer' as const }
    await expectAllowed(isAllowed, owner.api.addOrganizationUser({ params, body }))
    const invitation = { email: 'new@example.com', role: 'admin' as const }
    await expectAllowed(isAllowed, owner.api.createInvitation({ params, body: invitation }))
  })

  it('collaborators are added and invited, or not', async () => {
    const { owner, params } = await createTeamWithPlan()
    const app_id = await createTestApp({ ...owner, ...params })
    const { email } = await service.createAccount()
    const isAllowed = has(plan, 'collaborators')
    await expectAllowed(isAllowed, owner.api.addCollaborator({ params: { appId: app_id }, body: { email } }))
    const invitation = { email: 'new@example.com', role: 'admin' as const, app_id }
    await expectAllowed(isAllowed, owner.api.createInvitation({ params, body: invitation }))
  })

  it.each(['appManager', 'viewer'] as const)('the role %s is given, or not', async (role) => {
    const team = await createTeam(service)
    const member = await createMember(service, team, 'developer')
    await setPlan(service, team.owner, plan)
    const params = { organizationId: team.organizationId }
    const { api } = team.owner
    const isAllowed = has(plan, 'all_roles')
    const { email } = await service.createAccount()
    await expectAllowed(isAllowed, api.addOrganizationUser({ params, body: { email, role } }))
    await expectAllowed(isAllowed, api.createInvitation({ params, body: { email: 'new@example.com', role } }))
    const change = { params: { ...params, userId: member.userId }, body: { role } }
    await expectAllowed(isAllowed, api.updateOrganizationUser(change))
    await api.updateOrganizationUser({ ...change, body: { role: 'admin' } })
    expect(await listRoles(service, team.organizationId)).toMatchObject({ [member.userId]: 'admin' })
  })
})

describe('a plan that becomes smaller', () => {
  it('leaves what there is: members, roles, collaborators, and invitations that wait', async () => {
    const team = await createTeam(service)
    const params = { organizationId: team.organizationId }
    const viewer = await createMember(service, team, 'viewer')
    const guest = await service.createAccount()
    const collaborator = await service.createAccount()
    const appId = await createTestApp({ ...team.owner, ...params })
    const added = { params: { appId }, body: { email: collaborator.email } }
    await team.owner.api.addCollaborator(added)
    const body = { email: guest.email, role: 'viewer' as const }
    const { id: invitationId } = await team.owner.api.createInvitation({ params, body })
    await setPlan(service, team.owner, 'free')

    await guest.api.acceptInvitation({ params: { invitationId } })
    expect(await listRoles(service, team.organizationId)).toEqual({
      [team.owner.userId]: 'owner',
      [viewer.userId]: 'viewer',
      [guest.userId]: 'viewer',
    })
    await team.owner.api.addCollaborator(added)
    expect(await collaborator.api.getApp({ params: { appId } })).toMatchObject({ app_id: appId })
    const change = { params: { appId, collaboratorId: collaborator.userId }, body: { role: 'admin' as const } }
    await team.owner.api.updateCollaborator(change)
    await viewer.api.getOrganization({ params })
  })
})
