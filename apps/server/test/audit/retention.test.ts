import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dropOldEvents } from '../../src/audit/maintain-partitions.ts'
import { sealEvents } from '../../src/audit/seal-events.ts'
import { verifyChains } from '../../src/audit/verify-chains.ts'
import { readConfig } from '../../src/config.ts'
import type { Db } from '../../src/db/connection.ts'
import { listPartitions } from '../../src/db/month-partitions.ts'
import { createTestDatabase } from '../support/test-database.ts'
import { describePerson, openDb, recordAll } from './events.ts'

const log = pino({ level: 'silent' })
const dayMs = 24 * 3600_000
let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db
/** Another instance of the service. */
let other: Db

beforeAll(async () => {
  database = await createTestDatabase()
  db = openDb(database.connectionString)
  other = openDb(database.connectionString)
  // Twelve months, one event on each first, fifteenth and last moment, in two organizations.
  for (const organizationId of [1, 2]) {
    const times = Array.from({ length: 12 }, (_, month) => [
      new Date(Date.UTC(2026, month)),
      new Date(Date.UTC(2026, month, 15)),
      new Date(Date.UTC(2026, month + 1) - 1),
    ]).flat()
    const doer = describePerson(1)
    await recordAll(
      db,
      times.map((at) => ({ organizationId, at, doer, label: at.toISOString() })),
    )
  }
  await sealEvents(db)
})
afterAll(async () => {
  await Promise.all([db.destroy(), other.destroy()])
  await database.drop()
})

const dropAt = async (time: Date, keptDays = 90, on = db) => {
  const config = { ...readConfig({}), auditRetentionDays: keptDays }
  await dropOldEvents({ db: on, clock: () => time, config, log })
}

async function findOldest(): Promise<Date | undefined> {
  const row = await db.selectFrom('audit_events').select('event_time').orderBy('event_time').limit(1).executeTakeFirst()
  return row?.event_time
}

describe('the months of the log', () => {
  it('are partitions, made as events come', async () => {
    const names = Array.from({ length: 12 }, (_, month) => `audit_events_2026_${String(month + 1).padStart(2, '0')}`)
    expect(await listPartitions(db, { table: 'audit_events' })).toEqual(names)
    expect(await verifyChains(db)).toEqual({ events: 72, problems: [] })
  })

  it('stay as long as one of their moments has to be kept', async () => {
    const end = Date.UTC(2026, 1)
    await dropAt(new Date(end + 90 * dayMs - 1))
    expect(await findOldest()).toEqual(new Date(Date.UTC(2026, 0)))
    await dropAt(new Date(end + 90 * dayMs))
    expect(await findOldest()).toEqual(new Date(end))
  })

  it('go whole, also when two instances drop them at once, and what is left is still proven', async () => {
    const time = new Date(Date.UTC(2026, 4) + 90 * dayMs)
    await Promise.all([dropAt(time), dropAt(time, 90, other)])
    expect(await findOldest()).toEqual(new Date(Date.UTC(2026, 4)))
    expect(await verifyChains(db)).toEqual({ events: 48, problems: [] })
  })

  it('go while others write, seal and verify', async () => {
    const at = new Date(Date.UTC(2026, 11, 31, 23, 59, 59, 999))
    const doer = describePerson(1)
    const [verified] = await Promise.all([
      verifyChains(other),
      dropAt(new Date(Date.UTC(2026, 5) + 90 * dayMs)),
      recordAll(db, [{ organizationId: 1, at, doer, label: 'meanwhile' }]),
    ])
    expect(verified.problems).toEqual([])
    expect(await verifyChains(db)).toEqual({ events: 43, problems: [] })
  })

  it('cannot lose their beginning without being found out', async () => {
    const [first] = await db
      .selectFrom('audit_events')
      .selectAll()
      .where('organization_id', '=', 2)
      .orderBy('seq')
      .execute()
    if (first === undefined) throw new Error('no event')
    await db.deleteFrom('audit_events').where('organization_id', '=', 2).where('seq', '=', first.seq).execute()
    const { problems } = await verifyChains(db)
    expect(problems).toMatchObject([
      { organizationId: 2, seq: first.seq + 1, problem: expect.stringContaining('missing') },
      { organizationId: 2, seq: first.seq + 1, problem: expect.stringContaining('does not follow') },
    ])
    await db.insertInto('audit_events').values(first).execute()
    expect((await verifyChains(db)).problems).toEqual([])
  })

  it('leave the numbers as they were when all are gone', async () => {
    const doer = describePerson(1)
    // Another organization goes on, so that the time that has passed is believed.
    await recordAll(db, [{ organizationId: 3, at: new Date(Date.UTC(2028, 0)), doer, label: 'elsewhere' }])
    await sealEvents(db)
    await dropAt(new Date(Date.UTC(2028, 0)))
    expect(await listPartitions(db, { table: 'audit_events' })).toEqual(['audit_events_2028_01'])
    expect(await verifyChains(db)).toEqual({ events: 1, problems: [] })
    await recordAll(db, [{ organizationId: 1, at: new Date(Date.UTC(2028, 0)), doer, label: 'again' }])
    expect(await verifyChains(db)).toEqual({ events: 2, problems: [] })
    const events = db.selectFrom('audit_events').select('seq').where('organization_id', '=', 1)
    const { seq } = await events.executeTakeFirstOrThrow()
    expect(seq).toBe(38)
  })
})
