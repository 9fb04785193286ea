import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let victim: TestAccount
let attacker: TestAccount
/** What the victim has, and what the attacker has of the same kind. */
let theirs: Holdings
let own: Holdings

type Holdings = Awaited<ReturnType<typeof createHoldings>>

beforeAll(async () => {
  service = await createTestService()
  victim = await service.createAccount()
  attacker = await service.createAccount()
  theirs = await createHoldings(victim)
  own = await createHoldings(attacker)
})
afterAll(() => service.stop())

async function createHoldings(holder: TestAccount) {
  const { id: organizationId } = await holder.api.createOrganization({ body: { name: 'Acme' } })
  const appId = await createTestApp({ ...holder, organizationId })
  const inOrganization = { params: { organizationId } }
  const account = await holder.api.createServiceAccount({ ...inOrganization, body: { name: 'CI' } })
  const params = { organizationId, serviceAccountId: account.id }
  const key = await holder.api.createServiceAccountKey({ params, body: { name: 'key' } })
  const rule = await holder.api.createTrustRule({ params, body: { repository: 'acme/app', workflow: 'release.yml' } })
  const invitation = await holder.api.createInvitation({
    ...inOrganization,
    body: { email: `invited-${organizationId}@example.com`, role: 'developer' },
  })
  const apiKey = await holder.api.createApiKey({ body: { name: 'mine' } })
  return {
    organizationId,
    appId,
    serviceAccountId: account.id,
    keyId: key.id,
    serviceAccountKey: key.key,
    ruleId: rule.id,
    invitationId: invitation.id,
    apiKeyId: apiKey.id,
    apiKey: apiKey.key,
  }
}

const refused = { status: 404, code: 'not_found' }

describe("ids of another tenant in one's own paths", () => {
  it('find no service account, key or trust rule', async () => {
    const { api } = attacker
    const foreign = { organizationId: own.organizationId, serviceAccountId: theirs.serviceAccountId }
    const mixed = { organizationId: own.organizationId, serviceAccountId: own.serviceAccountId }
    const attempts = [
      () => api.updateServiceAccount({ params: foreign, body: { role: 'admin' } }),
      () => api.deleteServiceAccount({ params: foreign }),
      () => api.listServiceAccountKeys({ params: foreign }),
      () => api.createServiceAccountKey({ params: foreign, body: { name: 'mine now' } }),
      () => api.revokeServiceAccountKey({ params: { ...foreign, keyId: theirs.keyId } }),
      () => api.revokeServiceAccountKey({ params: { ...mixed, keyId: theirs.keyId } }),
      () => api.listTrustRules({ params: foreign }),
      () => api.createTrustRule({ params: foreign, body: { repository: 'evil/app', workflow: 'x.yml' } }),
      () => api.deleteTrustRule({ params: { ...foreign, ruleId: theirs.ruleId } }),
      () => api.deleteTrustRule({ params: { ...mixed, ruleId: theirs.ruleId } }),
    ]
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject(refused)
    expect(await service.client(theirs.serviceAccountKey).listApps()).toMatchObject({
      apps: [{ app_id: theirs.appId }],
    })
  })

  it('find no invitation, member, API key or app', async () => {
    const { api } = attacker
    const { organizationId } = own
    const attempts = [
      () => api.revokeInvitation({ params: { organizationId, invitationId: theirs.invitationId } }),
      () => api.acceptInvitation({ params: { invitationId: theirs.invitationId } }),
      () => api.declineInvitation({ params: { invitationId: theirs.invitationId } }),
      () => api.updateOrganizationUser({ params: { organizationId, userId: victim.userId }, body: { role: 'viewer' } }),
      () => api.removeOrganizationUser({ params: { organizationId, userId: victim.userId } }),
      () => api.revokeApiKey({ params: { keyId: theirs.apiKeyId } }),
      () => api.transferApp({ params: { organizationId }, body: { app_id: theirs.appId } }),
      () =>
        api.createInvitation({
          params: { organizationId },
          body: { email: 'x@example.com', role: 'developer', app_id: theirs.appId },
        }),
    ]
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject(refused)
    await expect(
      api.transferOwnership({ params: { organizationId }, body: { user_id: victim.userId } }),
    ).rejects.toMatchObject({ status: 404, code: 'user_not_found' })
    expect(await service.client(theirs.apiKey).getApp({ params: { appId: theirs.appId } })).toBeDefined()
  })
})

describe('fields that nobody may set', () => {
  it('make nobody more than they are', async () => {
    const { api } = attacker
    const more = {
      id: 1,
      email: victim.email,
      plan: 'enterprise',
      role: 'owner',
      user_id: victim.userId,
      organization_type: 'personal',
      email_verified_at: new Date().toISOString(),
      jwt_issuer: 'https://evil.example',
    }
    const before = await api.getCurrentUser()
    await api.createUser({ body: { name: 'x', ...more } as never })
    await api.updateCurrentUser({ body: { display_name: before.display_name ?? null, ...more } as never })
    expect(await api.getCurrentUser()).toEqual(before)
    const organization = await api.createOrganization({ body: { ...more, name: 'Mine' } as never })
    expect(organization).toMatchObject({ name: 'Mine', organization_type: 'team' })
    expect(organization.id).not.toBe(1)
    const { users } = await api.listOrganizationUsers({ params: { organizationId: organization.id } })
    expect(users).toMatchObject([{ user: { id: attacker.userId }, role: 'owner' }])
    const params = { organizationId: organization.id }
    const account = await api.createServiceAccount({ params, body: { ...more, role: 'admin', name: 'CI' } as never })
    expect(account.role).toBe('developer')
    const key = await api.createApiKey({ body: { ...more, name: 'k' } as never })
    expect(await service.client(key.key).getCurrentUser()).toMatchObject({ id: attacker.userId })
  })

  it.each(['owner', 'none', 'root', 'Admin'])('are refused when they are the role %s', async (role) => {
    const { api } = attacker
    const params = { organizationId: own.organizationId }
    const member = await service.createAccount()
    await api.addOrganizationUser({ params, body: { email: member.email, role: 'viewer' } })
    const memberParams = { ...params, userId: member.userId }
    const accountParams = { ...params, serviceAccountId: own.serviceAccountId }
    const body = { role, email: 'somebody@example.com' } as never
    const wrong = { status: 400, code: 'invalid_request', details: expect.stringContaining('role') }
    await expect(api.addOrganizationUser({ params, body })).rejects.toMatchObject(wrong)
    await expect(api.createInvitation({ params, body })).rejects.toMatchObject(wrong)
    await expect(api.updateOrganizationUser({ params: memberParams, body })).rejects.toMatchObject(wrong)
    await expect(api.updateServiceAccount({ params: accountParams, body })).rejects.toMatchObject(wrong)
  })
})

describe('a key that leaked', () => {
  it('of the weaker kind makes no stronger one', async () => {
    const { key } = await victim.api.createApiKey({ body: { name: 'CI', permission: 'release_and_patch' } })
    const leaked = service.client(key)
    const refusedByLevel = { status: 403, code: 'forbidden' }
    await expect(leaked.createApiKey({ body: { name: 'more', permission: 'full' } })).rejects.toMatchObject(
      refusedByLevel,
    )
    await expect(leaked.listApiKeys()).rejects.toMatchObject(refusedByLevel)
    await expect(leaked.createOrganization({ body: { name: 'x' } })).rejects.toMatchObject(refusedByLevel)
    await expect(leaked.deleteCurrentUser()).rejects.toMatchObject(refusedByLevel)
  })

  it('is in no answer that lists keys, and in no row', async () => {
    const { apiKey, serviceAccountKey } = theirs
    const params = { organizationId: theirs.organizationId, serviceAccountId: theirs.serviceAccountId }
    const answers = JSON.stringify([
      await victim.api.listApiKeys(),
      await victim.api.listServiceAccountKeys({ params }),
      await victim.api.listInvitations({ params: { organizationId: theirs.organizationId } }),
    ])
    const rows = JSON.stringify(await service.deps.db.selectFrom('api_keys').selectAll().execute())
    for (const secret of [apiKey, serviceAccountKey]) {
      expect(answers).not.toContain(secret)
      expect(rows).not.toContain(secret.slice(20))
    }
    expect(answers).not.toContain('/invitations/')
  })
})
