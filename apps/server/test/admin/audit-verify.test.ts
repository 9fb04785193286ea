import { type RawBuilder, sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { verifyAuditLog } from '../../src/admin/actions.ts'
import { createTeam } from '../organizations/teams.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { runAdmin } from './run-admin.ts'

let service: TestService
let organizationId = 0
let otherId = 0

beforeAll(async () => {
  service = await createTestService()
  for (const ids of [1, 2]) {
    const team = await createTeam(service)
    const params = { organizationId: team.organizationId }
    for (const name of ['Birds', 'Bees', 'Ants', 'Owls']) {
      await team.owner.api.updateOrganization({ params, body: { name: `${name} ${ids}` } })
    }
    if (ids === 1) organizationId = team.organizationId
    else otherId = team.organizationId
  }
  expect(await verifyAuditLog(service.deps)).toEqual({ events: 10, organizations: 2, problems: [] })
  await run(sql`create table kept_events as select * from audit_events`)
  await run(sql`create table kept_chains as select * from audit_chains`)
})
afterAll(async () => {
  await restore()
  await service.stop()
})
beforeEach(restore)

async function restore(): Promise<void> {
  await run(sql`delete from audit_events`)
  await run(sql`insert into audit_events select * from kept_events`)
  await run(sql`delete from audit_chains`)
  await run(sql`insert into audit_chains select * from kept_chains`)
}

async function run(statement: RawBuilder<unknown>): Promise<void> {
  await statement.execute(service.deps.db)
}

const at = (seq: number) => sql`organization_id = ${organizationId} and seq = ${seq}`

const changedText = sql`replace(event, 'Bees', 'Cats')`
const insertCopy = (seq: number) => sql`
  insert into audit_events (organization_id, seq, event_time, operation, app_id, actor_id, event, hash)
  select organization_id, ${seq}, event_time + interval '1 millisecond', operation, app_id, actor_id, event, hash
  from audit_events where ${at(5)}`

const tamperings: [string, number | undefined, () => RawBuilder<unknown>[]][] = [
  ['a changed text', 3, () => [sql`update audit_events set event = ${changedText} where ${at(3)}`]],
  [
    'a changed text under its own hash',
    4,
    () => [sql`update audit_events set event = ${changedText}, hash = sha256(${changedText}::bytea) where ${at(3)}`],
  ],
  [
    'a changed last event under its own hash',
    5,
    () => [
      sql`update audit_events set event = event || ' ', hash = sha256(convert_to(event || ' ', 'UTF8')) where ${at(5)}`,
    ],
  ],
  ['text that is no event', 3, () => [sql`update audit_events set event = 'gone' where ${at(3)}`]],
  ['an event removed from the middle', 4, () => [sql`delete from audit_events where ${at(3)}`]],
  ['the first event removed', 2, () => [sql`delete from audit_events where ${at(1)}`]],
  ['the last event removed', 5, () => [sql`delete from audit_events where ${at(5)}`]],
  ['all events removed', 1, () => [sql`delete from audit_events where organization_id = ${organizationId}`]],
  ['an event inserted at the end', 6, () => [insertCopy(6)]],
  ['an event inserted under a number that is taken', 3, () => [insertCopy(3)]],
  ['an event filed under another app', 3, () => [sql`update audit_events set app_id = 'other' where ${at(3)}`]],
  ['an event filed under another actor', 3, () => [sql`update audit_events set actor_id = '999999' where ${at(3)}`]],
  [
    'an event filed under another operation',
    3,
    () => [sql`update audit_events set operation = 'app.create' where ${at(3)}`],
  ],
  [
    'an event filed at another time',
    3,
    () => [sql`update audit_events set event_time = event_time - interval '1 microsecond' * 1000 where ${at(3)}`],
  ],
  [
    'two events that changed places',
    3,
    () => [
      sql`update audit_events set seq = -3 where ${at(3)}`,
      sql`update audit_events set seq = 3 where ${at(4)}`,
      sql`update audit_events set seq = 4 where ${at(-3)}`,
    ],
  ],
  [
    'a chain that has been forgotten',
    undefined,
    () => [sql`delete from audit_chains where organization_id = ${organizationId}`],
  ],
]

describe('audit verify', () => {
  it.each(tamperings)('finds %s', async (_name, seq, tamper) => {
    for (const statement of tamper()) await run(statement)
    const { problems } = await verifyAuditLog(service.deps)
    const place =
      seq === undefined ? `organization ${organizationId} ` : `organization ${organizationId}, event ${seq} `
    expect(problems.map((problem) => problem.slice(0, place.length))).toContain(place)
    expect(problems.filter((problem) => problem.includes(`organization ${otherId}`))).toEqual([])
  })

  it('finds an event moved into the log of another organization', async () => {
    await run(sql`update audit_events set organization_id = ${otherId}, seq = 6 where ${at(5)}`)
    const { problems } = await verifyAuditLog(service.deps)
    expect(problems.join('\n')).toContain(`organization ${organizationId}, event 5 `)
    expect(problems.join('\n')).toContain(`organization ${otherId}, event 6 `)
  })

  it('finds nothing in what is whole, also after months were dropped', async () => {
    const [end] = await service.deps.db
      .selectFrom('audit_events')
      .select(['seq', 'hash'])
      .where('organization_id', '=', organizationId)
      .where('seq', '=', 2)
      .execute()
    await run(sql`delete from audit_events where organization_id = ${organizationId} and seq <= 2`)
    await run(sql`update audit_chains set dropped_seq = 2, dropped_hash = ${end?.hash}
      where organization_id = ${organizationId}`)
    expect(await verifyAuditLog(service.deps)).toEqual({ events: 8, organizations: 2, problems: [] })
  })
})

describe('npm run admin -- audit verify', () => {
  const verify = async () => {
    const environment = { DATABASE_URL: service.connectionString, GODWIT_PUBLIC_URL: service.baseUrl }
    return await runAdmin(environment, ['audit', 'verify'])
  }

  it('says how much is whole, also of what was not sealed yet', async () => {
    const team = await createTeam(service)
    const answer = await verify()
    expect(answer).toEqual({ code: 0, stdout: '11 events of 3 organizations are whole\n', stderr: '' })
    const { organizationId: id } = team
    await run(sql`delete from audit_events where organization_id = ${id}`)
    await run(sql`delete from audit_chains where organization_id = ${id}`)
  })

  it('fails with a line for each problem', async () => {
    await run(sql`update audit_events set app_id = 'other' where ${at(3)}`)
    await run(sql`delete from audit_events where organization_id = ${otherId} and seq = 5`)
    const { code, stdout, stderr } = await verify()
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr.split('\n')).toEqual([
      `organization ${organizationId}, event 3 is filed under something else than it says`,
      `organization ${otherId}, event 5 is missing, up to 5`,
      '',
    ])
  })
})
