import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { addAllowedDomain, removeAllowedDomain } from '../../src/organizations/allowed-domains.ts'
import { listAllowedDomains } from '../../src/organizations/queries.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { createTeam, type Team } from './teams.ts'

let service: TestService
let team: Team
let outsider: TestAccount
let params: { organizationId: number }

beforeAll(async () => {
  service = await createTestService()
  outsider = await service.createAccount({ email: 'ada@elsewhere.example' })
})
beforeEach(async () => {
  team = await createTeam(service)
  params = { organizationId: team.organizationId }
})
afterAll(() => service.stop())

const refused = {
  status: 403,
  code: 'domain_not_allowed',
  details: 'email: must be of one of these domains: acme.example',
}

describe('the allowed domains of an organization', () => {
  it('are added and removed in any case, and again without a change', async () => {
    await addAllowedDomain(service.deps, { ...params, domain: 'Acme.Example' })
    await addAllowedDomain(service.deps, { ...params, domain: 'acme.example' })
    expect(await listAllowedDomains(service.deps.db, params)).toEqual(['acme.example'])
    await removeAllowedDomain(service.deps, { ...params, domain: 'ACME.example' })
    await removeAllowedDomain(service.deps, { ...params, domain: 'acme.example' })
    expect(await listAllowedDomains(service.deps.db, params)).toEqual([])
  })

  it.each(['', 'acme', 'a b.example', '@acme.example', 'http://acme.example', `${'a'.repeat(64)}.example`])(
    'do not take %j',
    async (domain) => {
      await expect(addAllowedDomain(service.deps, { ...params, domain })).rejects.toMatchObject({
        code: 'invalid_request',
        details: 'domain: must be a domain',
      })
    },
  )

  it('are of an organization that there is', async () => {
    const missing = { organizationId: 999_999_999, domain: 'acme.example' }
    await expect(addAllowedDomain(service.deps, missing)).rejects.toMatchObject({ code: 'not_found' })
    await expect(removeAllowedDomain(service.deps, missing)).rejects.toMatchObject({ code: 'not_found' })
  })

  it('let nobody else be added or invited, to the organization or to an app', async () => {
    const appId = await createTestApp({ ...team.owner, ...params })
    await addAllowedDomain(service.deps, { ...params, domain: 'acme.example' })
    const { api } = team.owner
    const body = { email: outsider.email, role: 'developer' as const }
    await expect(api.addOrganizationUser({ params, body })).rejects.toMatchObject(refused)
    await expect(api.createInvitation({ params, body })).rejects.toMatchObject(refused)
    await expect(api.createInvitation({ params, body: { ...body, app_id: appId } })).rejects.toMatchObject(refused)
    await expect(api.addCollaborator({ params: { appId }, body })).rejects.toMatchObject(refused)
    expect(await api.createInvitation({ params, body: { ...body, email: 'eve@ACME.example' } })).toMatchObject({
      email: 'eve@ACME.example',
    })
  })

  it('are asked again when an invitation of before is accepted', async () => {
    const body = { email: outsider.email, role: 'developer' as const }
    const { id: invitationId } = await team.owner.api.createInvitation({ params, body })
    await addAllowedDomain(service.deps, { ...params, domain: 'acme.example' })
    await expect(outsider.api.acceptInvitation({ params: { invitationId } })).rejects.toMatchObject(refused)
    await removeAllowedDomain(service.deps, { ...params, domain: 'acme.example' })
    await outsider.api.acceptInvitation({ params: { invitationId } })
    expect(await outsider.api.getOrganization({ params })).toMatchObject({ id: team.organizationId })
  })
})
