import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Actor } from '../../src/http/actor.ts'
import { getCurrentUser, signUp } from '../../src/users/actions.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let person: TestAccount

beforeAll(async () => {
  service = await createTestService()
  person = await service.createAccount()
})
afterAll(() => service.stop())

/** A credential that is good but belongs to no account, as tokens of an identity provider can be. */
function createActorWithoutAccount(email: string): Actor {
  return {
    kind: 'newcomer',
    email,
    issuer: 'https://issuer.example',
    subject: email,
    credential: {
      kind: 'id_token',
      id: email,
      issuer: 'https://issuer.example',
      createdAt: new Date(),
      isMfa: undefined,
    },
    allows: new Set(),
    source: { address: undefined, userAgent: undefined, correlationId: undefined },
  }
}

describe('GET /api/v1/users/me', () => {
  it('tells the own account, under the names of the spec and of the clients', async () => {
    await service.deps.db
      .updateTable('users')
      .set({ payment_customer_id: 'cus_1', patch_overage_limit: 5000 })
      .where('id', '=', person.userId)
      .execute()
    expect(await person.api.getCurrentUser()).toEqual({
      id: person.userId,
      email: person.email,
      payment_customer_id: 'cus_1',
      stripe_customer_id: 'cus_1',
      has_active_subscription: true,
      jwt_issuer: service.baseUrl,
      patch_overage_limit: 5000,
    })
  })

  it('is a 404 when no account belongs to the credential', async () => {
    await expect(getCurrentUser(service.deps, createActorWithoutAccount('new@example.com'))).rejects.toMatchObject({
      status: 404,
      code: 'not_found',
    })
  })
})

describe('POST /api/v1/users', () => {
  it('answers the account that exists, unchanged', async () => {
    const before = await person.api.getCurrentUser()
    expect(await person.api.createUser({ body: { name: 'Another name' } })).toEqual(before)
  })

  it('creates the account and its personal organization once, also when asked twice at once', async () => {
    const actor = createActorWithoutAccount('ada@example.com')
    const [first, second] = await Promise.all([
      signUp(service.deps, actor, { displayName: 'Ada' }),
      signUp(service.deps, actor, { displayName: 'Ada' }),
    ])
    expect(second.id).toBe(first.id)
    expect(first).toMatchObject({ email: 'ada@example.com', display_name: 'Ada', jwt_issuer: 'https://issuer.example' })
    const memberships = await service.deps.db
      .selectFrom('organization_members')
      .innerJoin('organizations', 'organizations.id', 'organization_id')
      .select(['role', 'organization_type'])
      .where('user_id', '=', first.id)
      .execute()
    expect(memberships).toEqual([{ role: 'owner', organization_type: 'personal' }])
  })
})
