import { type AuditEvent, auditEventNames } from '@godwit/contract'
import type { Client } from '@godwit/sdk'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { writeCursor } from '../../src/audit/rules.ts'
import { createMember, createServiceAccountClient, createTeam, setPlan, type Team } from '../organizations/teams.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { describeMachine, describePerson, type Query, readAll, readLabels, recordAll, staffDoer } from './events.ts'

const start = new Date('2026-03-01T12:00:00.000Z')
let now = start
let service: TestService
let team: Team
let api: Client
let bystander: TestAccount

beforeAll(async () => {
  service = await createTestService({ clock: () => now })
  bystander = await service.createAccount()
  await useNewTeam()
})
afterAll(() => service.stop())

/** A log of its own, whose first event is the creation of the organization. */
async function useNewTeam(): Promise<void> {
  now = start
  team = await createTeam(service)
  api = team.owner.api
}

const after = (ms: number) => new Date(start.getTime() + ms)
const list = (query: Query = {}) => api.listAuditLogs({ params: { organizationId: team.organizationId }, query })

/** One event each second, labelled from `from` on. */
async function recordMany(count: number, from = 0): Promise<string[]> {
  const labels = Array.from({ length: count }, (_, index) => String(from + index))
  const doer = describePerson(team.owner.userId)
  const { organizationId } = team
  await recordAll(
    service.deps.db,
    labels.map((label) => ({ organizationId, label, doer, at: after(Number(label) * 1000) })),
  )
  return labels
}

const labelled = (events: AuditEvent[]) => readLabels(events).filter((label) => label !== undefined)

describe('a page', () => {
  it('has 30 events unless told, and any number up to 100', async () => {
    await useNewTeam()
    await recordMany(120)
    expect((await list()).data).toHaveLength(30)
    for (const per_page of ['1', '100']) expect((await list({ per_page })).data).toHaveLength(Number(per_page))
  })

  it.each(['0', '101', '-1', 'x', '1.5', ''])('cannot have %j events', async (per_page) => {
    await expect(list({ per_page })).rejects.toMatchObject({
      status: 400,
      details: expect.stringContaining('per_page'),
    })
  })

  it('is newest first unless told', async () => {
    await useNewTeam()
    const labels = await recordMany(5)
    now = after(3600_000)
    expect(labelled((await list()).data)).toEqual(labels.toReversed())
    expect(labelled((await list({ order: 'desc' })).data)).toEqual(labels.toReversed())
    expect(labelled((await list({ order: 'asc' })).data)).toEqual(labels)
    await expect(list({ order: 'up' as 'asc' })).rejects.toMatchObject({ status: 400 })
  })
})

describe('a cursor', () => {
  it.each(['asc', 'desc'] as const)('walks %s over each event once, whatever the sizes of the pages', async (order) => {
    await useNewTeam()
    const labels = await recordMany(250)
    now = after(3600_000)
    const expected = order === 'asc' ? labels : labels.toReversed()
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 5 }), async (sizes) => {
        expect(await walk({ order }, sizes)).toEqual(expected)
      }),
      { numRuns: 10 },
    )
  })

  it('stays valid while events arrive and over a restart', async () => {
    await useNewTeam()
    await recordMany(60)
    now = after(3600_000)
    for (const order of ['asc', 'desc'] as const) {
      const before = await walk({ order }, [100])
      const first = await list({ order, per_page: '25' })
      await recordMany(20, order === 'asc' ? 100 : 200)
      await service.restart()
      const rest = await walk({ order, ...(first.next_cursor === undefined ? {} : { cursor: first.next_cursor }) }, [7])
      const arrived = order === 'asc' ? await recordedSince(before.length) : []
      expect([...labelled(first.data), ...rest]).toEqual([...before, ...arrived])
    }
  })

  it('gives the same events again when it is used again', async () => {
    await useNewTeam()
    await recordMany(10)
    now = after(3600_000)
    const { next_cursor = '' } = await list({ order: 'asc', per_page: '4' })
    expect(await list({ order: 'asc', cursor: next_cursor })).toEqual(await list({ order: 'asc', cursor: next_cursor }))
  })

  it("is refused when it is malformed or another organization's", async () => {
    const other = await createTeam(service)
    const params = { organizationId: other.organizationId }
    const { next_cursor = '' } = await other.owner.api.listAuditLogs({ params, query: { order: 'asc' } })
    const own = writeCursor({ organizationId: team.organizationId, seq: 1 })
    const malformed = ['', '!', 'bm9uZQ', 'W10', `${own}=`, ` ${own}`, `${own}\n`, own.slice(0, -2), 'x'.repeat(201)]
    for (const cursor of [...malformed, next_cursor]) {
      const refusal = { status: 400, code: 'invalid_request', details: expect.stringContaining('cursor') }
      await expect(list({ cursor }), JSON.stringify(cursor)).rejects.toMatchObject(refusal)
    }
  })

  async function walk(query: Query, sizes: number[]): Promise<(string | undefined)[]> {
    const labels: (string | undefined)[] = []
    let cursor = query.cursor
    for (let page = 0; ; page += 1) {
      const per_page = String(sizes[page % sizes.length])
      const { data, next_cursor } = await list({ ...query, per_page, ...(cursor === undefined ? {} : { cursor }) })
      labels.push(...labelled(data))
      if (next_cursor === undefined || data.length === 0) return labels
      cursor = next_cursor
    }
  }

  async function recordedSince(count: number) {
    return labelled(await readAll(api, team.organizationId, { order: 'asc' })).slice(count)
  }
})

describe('oldest first', () => {
  it('leaves out the last minute and always gives a cursor, also on an empty page', async () => {
    await useNewTeam()
    now = start
    const [created] = (await list()).data
    expect(created?.api.operation).toBe('organization.create')
    const empty = await list({ order: 'asc' })
    expect(empty).toEqual({ data: [], next_cursor: expect.any(String) })
    const { next_cursor: cursor = '' } = empty
    now = after(59_999)
    expect((await list({ order: 'asc', cursor })).data).toEqual([])
    now = after(60_000)
    const full = await list({ order: 'asc', cursor })
    expect(full.data).toEqual([created])
    const again = await list({ order: 'asc', cursor: full.next_cursor ?? '' })
    expect(again).toEqual({ data: [], next_cursor: full.next_cursor })
  })

  it('gives a cursor on a log that has no event at all', async () => {
    const account = await service.createAccount()
    const params = { organizationId: account.organizationId }
    expect(await account.api.listAuditLogs({ params })).toEqual({ data: [] })
    const { data, next_cursor } = await account.api.listAuditLogs({ params, query: { order: 'asc' } })
    expect([data, typeof next_cursor]).toEqual([[], 'string'])
  })

  it('newest first gives no cursor on the last page', async () => {
    await useNewTeam()
    await recordMany(3)
    const first = await list({ per_page: '2' })
    const last = await list({ per_page: '2', cursor: first.next_cursor ?? '' })
    expect([first.data.length, last.data.length, last.next_cursor]).toEqual([2, 2, undefined])
  })
})

describe('startDate and endDate', () => {
  it('are inclusive to the millisecond, in any time zone', async () => {
    await useNewTeam()
    const doer = describePerson(team.owner.userId)
    const { organizationId } = team
    const times = [0, 1, 2, 3].map((ms) => after(10_000 + ms))
    await recordAll(
      service.deps.db,
      times.map((at, index) => ({ organizationId, at, doer, label: String(index) })),
    )
    now = after(3600_000)
    const [at1, at2] = [times[1]?.toISOString() ?? '', times[2]?.toISOString() ?? '']
    const inIndia = '2026-03-01T17:30:10.001+05:30'
    for (const order of ['asc', 'desc'] as const) {
      const read = async (query: Query) => labelled((await list({ order, ...query })).data).toSorted()
      expect(await read({ startDate: at1, endDate: at2 })).toEqual(['1', '2'])
      expect(await read({ startDate: inIndia })).toEqual(['1', '2', '3'])
      expect(await read({ startDate: inIndia, endDate: inIndia })).toEqual(['1'])
      expect(await read({ startDate: at2, endDate: at1 })).toEqual([])
      expect(await read({ endDate: '0001-01-01T00:00:00Z' })).toEqual([])
      expect(await read({ startDate: '9999-12-31T23:59:59.999Z' })).toEqual([])
      expect(await read({ startDate: '0000-01-01T00:00:00Z', endDate: '9999-12-31T23:59:59-12:00' })).toHaveLength(4)
    }
  })

  it.each(['2026-03-01', '2026-03-01T12:00:00', '2026-02-30T12:00:00Z', '1772366400000', 'yesterday', ''])(
    'are refused as %j',
    async (text) => {
      for (const name of ['startDate', 'endDate']) {
        const refusal = { status: 400, details: expect.stringContaining(name) }
        await expect(list({ [name]: text })).rejects.toMatchObject(refusal)
      }
    },
  )
})

describe('appId, actorId and operation', () => {
  it('find, in any combination, with any dates, order and cursor, what looking at every event finds', async () => {
    await useNewTeam()
    const machine = await createServiceAccountClient(service, team, 'admin')
    const people = [team.owner.userId, bystander.userId]
    const doers = [...people.map(describePerson), describeMachine(machine.id, team.organizationId), staffDoer]
    const [apps, operations] = [['a1', 'a2', undefined], auditEventNames.slice(10, 14)]
    const { organizationId } = team
    const events = Array.from({ length: 400 }, (_, index) => ({
      organizationId,
      label: String(index),
      at: after(index * 1000),
      doer: doers[(index * 7) % 4] ?? staffDoer,
      appId: apps[(index * 5 + (index >> 3)) % 3],
      operation: operations[(index * 3 + (index >> 2)) % 4] ?? 'app.update',
    }))
    await recordAll(service.deps.db, events)
    now = after(10_000_000)
    const all = (await readAll(api, organizationId, { order: 'asc' })).filter(({ unmapped }) => unmapped.label)
    const maybe = <T>(values: T[]) => fc.constantFrom(undefined, ...values)
    const query = fc.record({
      order: fc.constantFrom('asc' as const, 'desc' as const),
      per_page: fc.constantFrom('1', '3', '50', '100'),
      appId: maybe(['a1', 'a2', 'a3']),
      actorId: maybe([...people.map(String), `sa_${machine.id}`, 'sa_999999', 'nobody']),
      operation: maybe([...operations, 'app.create' as const]),
      from: maybe([0, 100, 250]),
      to: maybe([99, 100, 300]),
    })
    await fc.assert(
      fc.asyncProperty(query, async ({ from, to, ...filters }) => {
        const found = all.filter(
          (event) =>
            (filters.appId === undefined || event.unmapped.app_id === filters.appId) &&
            (filters.actorId === undefined || event.actor.user.uid === filters.actorId) &&
            (filters.operation === undefined || event.api.operation === filters.operation) &&
            event.time >= after((from ?? 0) * 1000).getTime() &&
            event.time <= after((to ?? 1000) * 1000).getTime(),
        )
        const dates = {
          startDate: after((from ?? 0) * 1000).toISOString(),
          ...(to === undefined ? {} : { endDate: after(to * 1000).toISOString() }),
        }
        const given = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined))
        const read = await readAll(api, organizationId, {
          ...given,
          ...dates,
          ...(filters.per_page === '1' ? { per_page: '3' } : {}),
        })
        expect(labelled(read)).toEqual(labelled(filters.order === 'asc' ? found : found.toReversed()))
      }),
      { numRuns: 60 },
    )
  })

  it.each(['app.updated', 'App.update', 'patch.unknown', ''])('refuse the operation %j', async (operation) => {
    const refusal = { status: 400, details: expect.stringContaining('operation') }
    await expect(list({ operation: operation as 'app.update' })).rejects.toMatchObject(refusal)
  })

  it('find nothing by an actor who is gone: its events stay, without a uid', async () => {
    await useNewTeam()
    const { organizationId } = team
    const leaver = await service.createAccount()
    const machine = await createServiceAccountClient(service, team, 'developer')
    const doers = [describePerson(leaver.userId), describeMachine(machine.id, organizationId)]
    await recordAll(
      service.deps.db,
      doers.map((doer) => ({ organizationId, at: start, doer, label: doer.kind })),
    )
    const uids = [String(leaver.userId), `sa_${machine.id}`]
    const labels = ['person', 'service_account']
    for (const [index, actorId] of uids.entries())
      expect(readLabels((await list({ actorId })).data)).toEqual([labels[index]])
    await leaver.api.deleteCurrentUser()
    await api.deleteServiceAccount({ params: { organizationId, serviceAccountId: machine.id } })
    for (const actorId of uids) expect((await list({ actorId })).data).toEqual([])
    const left = (await list()).data.filter(({ unmapped }) => labels.includes(unmapped.label ?? ''))
    expect(left.map(({ actor }) => [actor.user.uid, actor.user.name])).toEqual([
      [undefined, 'machine'],
      [undefined, `Person ${leaver.userId}`],
    ])
  })

  it("never find the staff's events by an actor", async () => {
    await useNewTeam()
    const { organizationId } = team
    await recordAll(service.deps.db, [{ organizationId, at: start, doer: staffDoer, label: 'staff' }])
    for (const actorId of ['', '0', 'null', 'undefined', 'Godwit staff', 'godwit_staff', 'admin_api']) {
      expect((await list({ actorId })).data).toEqual([])
    }
    expect(readLabels((await list()).data)).toContain('staff')
  })
})

describe('who may read', () => {
  it("never reads another organization's events", async () => {
    const other = await createTeam(service)
    const doer = describePerson(other.owner.userId)
    await recordAll(service.deps.db, [{ organizationId: other.organizationId, at: start, doer, label: 'theirs' }])
    for (const query of [{}, { order: 'asc' }, { actorId: String(other.owner.userId) }] as Query[]) {
      expect(readLabels(await readAll(api, team.organizationId, query))).not.toContain('theirs')
    }
    const params = { organizationId: other.organizationId }
    await expect(api.listAuditLogs({ params })).rejects.toMatchObject({ status: 404 })
  })

  it('reads it as owner or admin, and nobody else among the members', async () => {
    await useNewTeam()
    const params = { organizationId: team.organizationId }
    const admin = await createMember(service, team, 'admin')
    expect((await admin.api.listAuditLogs({ params })).data).not.toEqual([])
    for (const role of ['appManager', 'developer', 'viewer'] as const) {
      const member = await createMember(service, team, role)
      await expect(member.api.listAuditLogs({ params }), role).rejects.toMatchObject({ status: 403 })
    }
    await expect(service.client().listAuditLogs({ params })).rejects.toMatchObject({ status: 401 })
  })

  it("needs the owner's plan to have it", async () => {
    await useNewTeam()
    for (const plan of ['free', 'pro', 'business'] as const) {
      await setPlan(service, team.owner, plan)
      await expect(list(), plan).rejects.toMatchObject({ status: 403, code: 'plan_required' })
    }
    await setPlan(service, team.owner, 'enterprise')
    expect((await list()).data).not.toEqual([])
  })

  it('reads it with the key of an auditor, which opens nothing else', async () => {
    await useNewTeam()
    const { organizationId } = team
    const params = { organizationId }
    const { api: auditor } = await createServiceAccountClient(service, team, 'auditor')
    expect((await auditor.listAuditLogs({ params })).data).not.toEqual([])
    const others = [
      auditor.getOrganization({ params }),
      auditor.listOrganizationUsers({ params }),
      auditor.listOrganizationApps({ params }),
      auditor.listServiceAccounts({ params }),
      auditor.updateOrganization({ params, body: { name: 'Mine' } }),
      auditor.createApp({ body: { display_name: 'Mine', organization_id: organizationId } }),
    ]
    for (const answer of await Promise.allSettled(others)) {
      expect(answer).toMatchObject({ status: 'rejected', reason: { status: 403 } })
    }
    const other = { organizationId: bystander.organizationId }
    await expect(auditor.listAuditLogs({ params: other })).rejects.toMatchObject({ status: 404 })
  })

  it('cannot read it any more once the organization is deleted', async () => {
    await useNewTeam()
    const params = { organizationId: team.organizationId }
    const { api: auditor } = await createServiceAccountClient(service, team, 'auditor')
    await api.deleteOrganization({ params })
    for (const reader of [api, auditor]) {
      const answer = await Promise.allSettled([reader.listAuditLogs({ params })])
      expect(answer).toMatchObject([{ reason: { status: reader === api ? 404 : expect.any(Number) } }])
    }
  })
})
