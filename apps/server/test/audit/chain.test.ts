import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { hashEvent } from '../../src/audit/rules.ts'
import { sealEvents } from '../../src/audit/seal-events.ts'
import { verifyChains } from '../../src/audit/verify-chains.ts'
import type { Db } from '../../src/db/connection.ts'
import { createTestDatabase } from '../support/test-database.ts'
import { describePerson, openDb, recordAll } from './events.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db

beforeAll(async () => {
  database = await createTestDatabase()
  db = openDb(database.connectionString)
})
afterAll(async () => {
  await db.destroy()
  await database.drop()
})

const doer = describePerson(5)
const at = new Date('2026-03-01T12:00:00Z')

beforeEach(async () => {
  await sql`truncate audit_events, audit_chains, audit_outbox`.execute(db)
  for (const organizationId of [1, 2]) {
    const labels = Array.from({ length: 10 }, (_, index) => `event ${index}`)
    await recordAll(
      db,
      labels.map((label) => ({ organizationId, at, doer, label, appId: 'a1' })),
    )
  }
  await sealEvents(db)
})

/** Runs as somebody who has the database's password. */
async function tamper(statement: string): Promise<void> {
  await sql.raw(statement).execute(db)
}

const event4 = 'where organization_id = 1 and seq = 4'
/** A row that looks as the service would have written it, but for the chain. */
const copyAs = (seq: string, time = 'event_time', organizationId = '1') => `
  insert into audit_events
  select ${organizationId}, ${seq}, ${time}, operation, app_id, actor_id, event, hash from audit_events ${event4}`

const move = (from: number, to: number) =>
  `update audit_events set seq = ${to} where organization_id = 1 and seq = ${from}`

describe('verifying', () => {
  it('finds nothing wrong with what the service wrote', async () => {
    expect(await verifyChains(db)).toEqual({ events: 20, problems: [] })
  })

  it.each([
    ['the text of an event', `update audit_events set event = replace(event, 'event 3', 'event X') ${event4}`],
    ['a text that is no event', `update audit_events set event = 'null' ${event4}`],
    ['a text that is no JSON', `update audit_events set event = '{' ${event4}`],
    ['a text of the wrong form', `update audit_events set event = '{"unmapped":null,"actor":7}' ${event4}`],
    ['the hash of an event', `update audit_events set hash = sha256('x') ${event4}`],
    ['what the operation filter finds', `update audit_events set operation = 'app.create' ${event4}`],
    ['what the app filter finds', `update audit_events set app_id = null ${event4}`],
    ['what the actor filter finds', `update audit_events set actor_id = '6' ${event4}`],
    ['when it is found', `update audit_events set event_time = event_time + interval '1 ms' ${event4}`],
    ['whose it is', `update audit_events set organization_id = 2, seq = 11 ${event4}`],
    ['the order of two events', [move(4, -4), move(5, 4), move(-4, 5)].join(';')],
  ])('finds a changed event: %s', async (_, statement) => {
    await tamper(statement)
    expect((await verifyChains(db)).problems).not.toEqual([])
  })

  it.each([
    ['the first', 'seq = 1'],
    ['one in the middle', 'seq = 4'],
    ['the last', 'seq = 10'],
    ['all', 'true'],
  ])('finds removed events: %s', async (_, which) => {
    await tamper(`delete from audit_events where organization_id = 1 and ${which}`)
    const { problems } = await verifyChains(db)
    expect(problems).not.toEqual([])
    expect(problems.every(({ organizationId }) => organizationId === 1)).toBe(true)
  })

  it.each([
    ['before the first', copyAs('0')],
    ['far before the first', copyAs('-9000000000')],
    ['under a number that is taken', copyAs('4', `event_time + interval '1 ms'`)],
    ['after the last', copyAs('11')],
    ['into an organization that has none', copyAs('1', 'event_time', '3')],
  ])('finds an inserted event: %s', async (_, statement) => {
    await tamper(statement)
    expect((await verifyChains(db)).problems).not.toEqual([])
  })

  it('finds an event that was rewritten together with its hash, by the one after it', async () => {
    const { event } = await db
      .selectFrom('audit_events')
      .select('event')
      .where('organization_id', '=', 1)
      .where('seq', '=', 4)
      .executeTakeFirstOrThrow()
    const forged = event.replace('event 3', 'event X')
    await db
      .updateTable('audit_events')
      .set({ event: forged, hash: hashEvent(forged) })
      .where('organization_id', '=', 1)
      .where('seq', '=', 4)
      .execute()
    expect((await verifyChains(db)).problems).toEqual([
      { organizationId: 1, seq: 5, problem: 'does not follow the event before it' },
    ])
  })

  it('finds an end of the chain that was set back', async () => {
    await tamper('update audit_chains set last_seq = 9 where organization_id = 1')
    expect((await verifyChains(db)).problems).not.toEqual([])
    await tamper('delete from audit_chains where organization_id = 1')
    expect((await verifyChains(db)).problems).toMatchObject([{ organizationId: 1 }])
  })

  it('finds nothing wrong while events go on arriving', async () => {
    let areWriting = true
    const write = async () => {
      while (areWriting) {
        await recordAll(db, [{ organizationId: 1, at, doer, label: 'more' }])
        await sealEvents(db)
      }
    }
    const writing = write()
    for (let round = 0; round < 20; round += 1) expect((await verifyChains(db)).problems).toEqual([])
    areWriting = false
    await writing
  })
})
