import { sql } from 'kysely'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dropOldEvents } from '../../src/audit/maintain-partitions.ts'
import { lockSealing } from '../../src/audit/seal-events.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

const dayMs = 24 * 3600_000

let service: TestService
let owner: TestAccount
let now: Date

beforeAll(async () => {
  now = new Date()
  service = await createTestService({ clock: () => now })
  owner = await service.createAccount()
})
afterAll(() => service.stop())

async function createTeam(): Promise<number> {
  return (await owner.api.createOrganization({ body: { name: 'Acme' } })).id
}

const read = async (organizationId: number, query: { order?: 'asc' | 'desc' } = {}) => {
  const { data } = await owner.api.listAuditLogs({ params: { organizationId }, query: query as never })
  return data.map(({ api, time }) => ({ operation: api.operation, time }))
}

describe('while another instance holds on to the sealing', () => {
  it('readers get what is sealed, and nobody else waits', async () => {
    const organizationId = await createTeam()
    await read(organizationId)
    await service.deps.db.transaction().execute(async (trx) => {
      await lockSealing(trx)
      await owner.api.updateOrganization({ params: { organizationId }, body: { name: 'Later' } })
      const readers = await Promise.all(Array.from({ length: 12 }, () => read(organizationId)))
      for (const events of readers) expect(events).toMatchObject([{ operation: 'organization.create' }])
    })
    expect(await read(organizationId)).toMatchObject([
      { operation: 'organization.rename' },
      { operation: 'organization.create' },
    ])
  })

  it('a sealing that fails keeps nobody from reading', async () => {
    const organizationId = await createTeam()
    await read(organizationId)
    const { db } = service.deps
    const broken = {
      organization_id: 1,
      operation: 'x',
      app_id: null,
      actor_id: null,
      occurred_at: now,
      event: 'no event',
    }
    await db.insertInto('audit_outbox').values(broken).execute()
    expect(await read(organizationId)).toHaveLength(1)
    await sql`delete from audit_outbox where event = 'no event'`.execute(db)
  })
})

describe('a clock that is ahead', () => {
  it('gives no event a time that has not come for the one who seals', async () => {
    const organizationId = await createTeam()
    const real = now
    now = new Date(real.getTime() + 3650 * dayMs)
    await owner.api.updateOrganization({ params: { organizationId }, body: { name: 'From the future' } })
    now = real
    for (const { time } of await read(organizationId)) expect(time).toBeLessThanOrEqual(real.getTime())
  })

  it('and has sealed blinds no reader afterwards', async () => {
    const organizationId = await createTeam()
    const real = now
    now = new Date(real.getTime() + 3650 * dayMs)
    await owner.api.updateOrganization({ params: { organizationId }, body: { name: 'From the future' } })
    await read(organizationId)
    now = real
    await owner.api.updateOrganization({ params: { organizationId }, body: { name: 'Today' } })
    expect(await read(organizationId, { order: 'asc' })).toHaveLength(3)
  })

  it('for a while does not cost the log', async () => {
    const other = await createTestService()
    const account = await other.createAccount()
    const { id: organizationId } = await account.api.createOrganization({ body: { name: 'Acme' } })
    const count = async () => (await account.api.listAuditLogs({ params: { organizationId } })).data.length
    expect(await count()).toBe(1)
    const { db, config } = other.deps
    const clock = () => new Date(Date.now() + 5000 * dayMs)
    await dropOldEvents({ db, config, clock, log: pino({ level: 'silent' }) })
    expect(await count()).toBe(1)
    await other.stop()
  })
})

describe('lists of download links', () => {
  it('leave no event when asked for by HEAD, which hands out none', async () => {
    const response = await fetch(`${service.baseUrl}/api/v1/apps/x/releases/1/artifacts`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${owner.apiKey}` },
    })
    expect(response.status).toBe(404)
    expect(response.headers.get('content-type')).toContain('json')
  })

  it('have a limit of their own, whatever key is used', async () => {
    const limited = await createTestService({ config: { requestsPerMinute: 100_000 } })
    const account = await limited.createAccount()
    const { key } = await account.api.createApiKey({ body: { name: 'second' } })
    const { id: appId } = await account.api.createApp({
      body: { display_name: 'Atlas', organization_id: account.organizationId },
    })
    const { release } = await account.api.createRelease({
      params: { appId },
      body: { version: '1', flutter_revision: 'r' },
    })
    const list = (api = account.api) => api.listReleaseArtifacts({ params: { appId, releaseId: release.id } })
    for (let i = 0; i < 300; i += 1) await list()
    await expect(list(limited.client(key))).rejects.toMatchObject({ status: 429, code: 'rate_limited' })
    await account.api.listReleases({ params: { appId } })
    await limited.stop()
  })
})

describe('a query that cannot be stored', () => {
  it.each(['appId', 'actorId'])('is a 400 that names %s', async (name) => {
    const organizationId = await createTeam()
    const response = await fetch(`${service.baseUrl}/api/v1/organizations/${organizationId}/audit-logs?${name}=%00`, {
      headers: { authorization: `Bearer ${owner.apiKey}` },
    })
    expect(response.status).toBe(400)
    expect(await response.text()).toContain(`${name}:`)
  })
})

describe('the source of a request', () => {
  it('is unknown when a trusted proxy passes on what is no address', async () => {
    const behind = await createTestService({ config: { trustedProxies: ['127.0.0.1'] } })
    const account = await behind.createAccount()
    const sources: unknown[] = []
    for (const forwarded of ['1.2.3.4', '::ffff:1.2.3.4', 'unknown', 'z'.repeat(5000)]) {
      const api = behind.client(account.apiKey, { 'x-forwarded-for': forwarded })
      const { id: organizationId } = await api.createOrganization({ body: { name: 'Acme' } })
      const { data } = await api.listAuditLogs({ params: { organizationId } })
      sources.push(data[0]?.src_endpoint)
    }
    expect(sources).toEqual([{ ip: '1.2.3.4' }, { ip: '1.2.3.4' }, { name: 'unknown' }, { name: 'unknown' }])
    await behind.stop()
  })
})
