import type { Plan } from '@godwit/contract'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let owner: TestAccount
let params: { organizationId: number }
let now = new Date('2026-01-01T00:00:00Z')

beforeAll(async () => {
  service = await createTestService({ clock: () => now })
})
afterAll(() => service.stop())
beforeEach(async () => {
  now = new Date('2026-01-01T00:00:00Z')
  owner = await service.createAccount()
  params = { organizationId: owner.organizationId }
})

async function create(name = 'CI') {
  const account = await owner.api.createServiceAccount({ params, body: { name } })
  return { ...params, serviceAccountId: account.id }
}

async function setPlan(plan: Plan) {
  await service.deps.db.updateTable('users').set({ plan }).where('id', '=', owner.userId).execute()
}

const rule = { repository: 'acme/app', workflow: 'release.yml' }

describe('a service account', () => {
  it('begins as a developer', async () => {
    const account = await owner.api.createServiceAccount({ params, body: { name: 'CI' } })
    expect(account).toEqual({
      id: expect.any(Number),
      organization_id: owner.organizationId,
      name: 'CI',
      role: 'developer',
      created_at: now.toISOString(),
      updated_at: now.toISOString(),
    })
    expect(await owner.api.listServiceAccounts({ params })).toEqual({ service_accounts: [account] })
  })

  it.each<[Plan, Record<string, boolean>]>([
    ['free', { admin: true, developer: true, appManager: false, viewer: false, auditor: false }],
    ['pro', { admin: true, developer: true, appManager: false, viewer: false, auditor: false }],
    ['business', { admin: true, developer: true, appManager: true, viewer: true, auditor: false }],
    ['enterprise', { admin: true, developer: true, appManager: true, viewer: true, auditor: true }],
  ])('on the plan %s has the roles of the plan', async (plan, roles) => {
    await setPlan(plan)
    const account = await create()
    for (const [role, isIncluded] of Object.entries(roles)) {
      const change = owner.api.updateServiceAccount({ params: account, body: { role: role as 'admin' } })
      if (isIncluded) await change
      else await expect(change).rejects.toMatchObject({ status: 403, code: 'plan_required' })
    }
  })

  it('keeps its role when the plan changes, and may be given it again', async () => {
    const account = await create()
    await owner.api.updateServiceAccount({ params: account, body: { role: 'auditor' } })
    await setPlan('free')
    await owner.api.updateServiceAccount({ params: account, body: { role: 'auditor' } })
    expect((await owner.api.listServiceAccounts({ params })).service_accounts[0]?.role).toBe('auditor')
  })

  it('with the role admin manages service accounts, without a personal account', async () => {
    const account = await create()
    const { key } = await owner.api.createServiceAccountKey({ params: account, body: { name: 'k' } })
    const api = service.client(key)
    await expect(api.listServiceAccounts({ params })).rejects.toMatchObject({ status: 403 })
    await owner.api.updateServiceAccount({ params: account, body: { role: 'admin' } })
    await api.createServiceAccount({ params, body: { name: 'another' } })
    await expect(api.listApiKeys()).rejects.toMatchObject({ status: 403 })
    await expect(api.createApiKey({ body: { name: 'k' } })).rejects.toMatchObject({ status: 403 })
  })

  it('takes its keys and rules along when it is deleted', async () => {
    const account = await create()
    const { key } = await owner.api.createServiceAccountKey({ params: account, body: { name: 'k' } })
    await owner.api.createTrustRule({ params: account, body: rule })
    await service.client(key).listApps()
    await owner.api.deleteServiceAccount({ params: account })
    await expect(service.client(key).listApps()).rejects.toMatchObject({ status: 401 })
    await expect(owner.api.listServiceAccountKeys({ params: account })).rejects.toMatchObject({ status: 404 })
    for (const table of ['api_keys', 'trust_rules'] as const) {
      const rows = await service.deps.db
        .selectFrom(table)
        .select('id')
        .where('service_account_id', '=', account.serviceAccountId)
        .execute()
      expect(rows).toEqual([])
    }
  })

  it('that is deleted while keys and rules are made for it leaves none', async () => {
    for (let round = 0; round < 5; round += 1) {
      const account = await create()
      const results = await Promise.allSettled([
        owner.api.createServiceAccountKey({ params: account, body: { name: 'k' } }),
        owner.api.deleteServiceAccount({ params: account }),
        owner.api.createTrustRule({ params: account, body: rule }),
        owner.api.updateServiceAccount({ params: account, body: { role: 'admin' } }),
      ])
      for (const result of results) {
        if (result.status === 'rejected') expect(result.reason).toMatchObject({ status: 404 })
      }
      expect((await owner.api.listServiceAccounts({ params })).service_accounts).toEqual([])
    }
  })
})

describe('keys of a service account', () => {
  it('are shown once, listed newest first, and do what the role allows', async () => {
    const account = await create()
    const first = await owner.api.createServiceAccountKey({ params: account, body: { name: 'a', expires_in: '90d' } })
    expect(first).toEqual({
      id: expect.any(Number),
      name: 'a',
      prefix: first.key.slice(0, 15),
      created_at: now.toISOString(),
      expires_at: '2026-04-01T00:00:00.000Z',
      last_used_at: null,
      key: expect.stringMatching(/^sb_api_/),
    })
    await owner.api.createServiceAccountKey({ params: account, body: { name: 'b', expires_in: 'none' } })
    const api = service.client(first.key)
    const { organizations } = await api.listOrganizations()
    expect(organizations).toMatchObject([{ organization: { id: owner.organizationId }, role: 'developer' }])
    const { keys } = await owner.api.listServiceAccountKeys({ params: account })
    expect(keys.map(({ name }) => name)).toEqual(['b', 'a'])
    expect(keys[1]?.last_used_at).toBe(now.toISOString())
    expect(JSON.stringify(keys)).not.toContain(first.key.slice(15))
    now = new Date('2026-04-01T00:00:00Z')
    await expect(api.listOrganizations()).rejects.toMatchObject({ status: 401 })
  })

  it('fail on the request after their revocation, which may be repeated', async () => {
    const account = await create()
    const { id: keyId, key } = await owner.api.createServiceAccountKey({ params: account, body: { name: 'k' } })
    await service.client(key).listApps()
    await owner.api.revokeServiceAccountKey({ params: { ...account, keyId } })
    await owner.api.revokeServiceAccountKey({ params: { ...account, keyId } })
    await expect(service.client(key).listApps()).rejects.toMatchObject({ status: 401 })
    expect(await owner.api.listServiceAccountKeys({ params: account })).toEqual({ keys: [] })
  })
})

describe('trust rules', () => {
  it('are for GitHub Actions unless said otherwise, and are made once', async () => {
    const account = await create()
    const created = await owner.api.createTrustRule({ params: account, body: rule })
    expect(created).toEqual({
      id: expect.any(Number),
      service_account_id: account.serviceAccountId,
      issuer: 'https://token.actions.githubusercontent.com',
      ...rule,
      created_at: now.toISOString(),
    })
    expect(await owner.api.createTrustRule({ params: account, body: rule })).toEqual(created)
    const narrower = await owner.api.createTrustRule({
      params: account,
      body: { ...rule, environment: 'production', ref_pattern: 'refs/tags/v*' },
    })
    expect(narrower).toMatchObject({ environment: 'production', ref_pattern: 'refs/tags/v*' })
    expect(await owner.api.listTrustRules({ params: account })).toEqual({ trust_rules: [created, narrower] })
    await owner.api.deleteTrustRule({ params: { ...account, ruleId: created.id } })
    expect(await owner.api.listTrustRules({ params: account })).toEqual({ trust_rules: [narrower] })
  })

  it('name an issuer that the operator allows', async () => {
    const account = await create()
    for (const issuer of ['https://gitlab.com', 'https://token.actions.githubusercontent.com/']) {
      await expect(owner.api.createTrustRule({ params: account, body: { ...rule, issuer } })).rejects.toMatchObject({
        status: 400,
        code: 'invalid_request',
        details: expect.stringMatching(/^issuer: /),
      })
    }
  })

  it('need a plan that includes them, and stay when it no longer does', async () => {
    const account = await create()
    await owner.api.createTrustRule({ params: account, body: rule })
    await setPlan('pro')
    await expect(owner.api.createTrustRule({ params: account, body: rule })).rejects.toMatchObject({
      status: 403,
      code: 'plan_required',
    })
    expect((await owner.api.listTrustRules({ params: account })).trust_rules).toHaveLength(1)
  })
})

describe('what belongs to another', () => {
  it('is not there, under whichever id of the path it is asked for', async () => {
    const account = await create()
    const other = await create('other')
    const { id: keyId, key } = await owner.api.createServiceAccountKey({ params: account, body: { name: 'k' } })
    const { id: ruleId } = await owner.api.createTrustRule({ params: account, body: rule })
    const stranger = await service.createAccount()
    const { key: strangerKey } = await stranger.api.createServiceAccountKey({
      params: {
        organizationId: stranger.organizationId,
        serviceAccountId: (
          await stranger.api.createServiceAccount({
            params: { organizationId: stranger.organizationId },
            body: { name: 'x' },
          })
        ).id,
      },
      body: { name: 'k' },
    })
    const foreign = { organizationId: stranger.organizationId, serviceAccountId: account.serviceAccountId }
    const calls = [
      () => stranger.api.updateServiceAccount({ params: foreign, body: { role: 'admin' } }),
      () => stranger.api.deleteServiceAccount({ params: foreign }),
      () => stranger.api.listServiceAccountKeys({ params: foreign }),
      () => stranger.api.createServiceAccountKey({ params: foreign, body: { name: 'k' } }),
      () => stranger.api.revokeServiceAccountKey({ params: { ...foreign, keyId } }),
      () => stranger.api.listTrustRules({ params: foreign }),
      () => stranger.api.createTrustRule({ params: foreign, body: rule }),
      () => stranger.api.deleteTrustRule({ params: { ...foreign, ruleId } }),
      () => service.client(strangerKey).listServiceAccounts({ params }),
      () => owner.api.revokeServiceAccountKey({ params: { ...other, keyId } }),
      () => owner.api.deleteTrustRule({ params: { ...other, ruleId } }),
      () => owner.api.revokeApiKey({ params: { keyId } }),
    ]
    for (const call of calls) await expect(call()).rejects.toMatchObject({ status: 404, code: 'not_found' })
    await service.client(key).listApps()
    expect((await owner.api.listTrustRules({ params: account })).trust_rules).toHaveLength(1)
  })
})
