import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { insertMember } from '../../src/organizations/queries.ts'
import { waitForBlocked, whileHolding } from '../support/hold.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let owner: TestAccount
let admin: TestAccount
let organizationId: number
let serviceAccountId: number
let appId: string

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
})
afterAll(() => service.stop())
beforeEach(async () => {
  admin = await service.createAccount()
  ;({ id: organizationId } = await owner.api.createOrganization({ body: { name: 'Acme' } }))
  await insertMember(service.deps.db, { organizationId, userId: admin.userId, role: 'admin' })
  appId = await createTestApp({ ...owner, organizationId })
  ;({ id: serviceAccountId } = await owner.api.createServiceAccount({
    params: { organizationId },
    body: { name: 'CI' },
  }))
})

const inOrganization = () => ({ params: { organizationId } })
const onAccount = () => ({ params: { organizationId, serviceAccountId } })

const attempts: [string, () => Promise<unknown>][] = [
  ['a service account', () => admin.api.createServiceAccount({ ...inOrganization(), body: { name: 'left behind' } })],
  ['a key', () => admin.api.createServiceAccountKey({ ...onAccount(), body: { name: 'left behind' } })],
  ['a role', () => admin.api.updateServiceAccount({ ...onAccount(), body: { role: 'admin' } })],
  [
    'a trust rule',
    () => admin.api.createTrustRule({ ...onAccount(), body: { repository: 'evil/app', workflow: 'x.yml' } }),
  ],
  [
    'an invitation',
    () => admin.api.createInvitation({ ...inOrganization(), body: { email: 'evil@example.com', role: 'admin' } }),
  ],
  ['an app', () => admin.api.createApp({ body: { display_name: 'left behind', organization_id: organizationId } })],
  ['nothing where an app was', () => admin.api.deleteApp({ params: { appId } })],
]

describe('an admin who is removed at that moment', () => {
  it.each(attempts)('leaves behind %s: refused', async (_name, attempt) => {
    const { db } = service.deps
    const pending: Promise<unknown>[] = []
    // The request has been let in, and waits for the organization.
    await whileHolding(db, `select from organizations where id = ${organizationId} for update`, async () => {
      pending.push(attempt().catch((error: unknown) => error))
      await waitForBlocked(db, 1)
      await db
        .deleteFrom('organization_members')
        .where('organization_id', '=', organizationId)
        .where('user_id', '=', admin.userId)
        .execute()
    })
    const [answer] = await Promise.all(pending)
    expect(answer).toMatchObject({ status: 404, code: 'not_found' })
    expect(await owner.api.getApp({ params: { appId } })).toBeDefined()
  })
})
