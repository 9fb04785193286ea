import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sealEvents } from '../../src/audit/seal-events.ts'
import { verifyChains } from '../../src/audit/verify-chains.ts'
import type { Db } from '../../src/db/connection.ts'
import { createTeam, type Team } from '../organizations/teams.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { describePerson, openDb, readLabels, record, recordAll } from './events.ts'

const minuteMs = 60_000
let now = new Date('2026-03-01T12:00:00Z')
let service: TestService
let team: Team
/** Other instances of the service, as the database sees them. */
let pools: Db[]

beforeAll(async () => {
  service = await createTestService({ clock: () => now })
  pools = Array.from({ length: 4 }, () => openDb(service.connectionString))
})
afterAll(async () => {
  for (const pool of pools) await pool.destroy()
  await service.stop()
})

/** Polls as a SIEM does, and keeps the labels of what it gets. */
function createReader({ owner, organizationId }: Team) {
  const labels: string[] = []
  let cursor: string | undefined
  return {
    labels,
    async poll() {
      const query = { order: 'asc', per_page: '37', ...(cursor === undefined ? {} : { cursor }) } as const
      const { data, next_cursor } = await owner.api.listAuditLogs({ params: { organizationId }, query })
      cursor = next_cursor
      labels.push(...readLabels(data).filter((label) => label !== undefined))
      return data.length
    },
  }
}

describe('an event that is committed late', () => {
  it('is read by whoever has read past its time, and nothing is read twice', async () => {
    team = await createTeam(service)
    const { organizationId } = team
    const doer = describePerson(team.owner.userId)
    const reader = createReader(team)
    const slow = await service.deps.db.startTransaction().execute()
    await record(slow, { organizationId, at: now, doer, label: 'slow' })
    for (const label of ['one', 'two', 'three']) {
      await recordAll(service.deps.db, [{ organizationId, at: now, doer, label }])
      now = new Date(now.getTime() + 2 * minuteMs)
      await reader.poll()
      expect(reader.labels.at(-1)).toBe(label)
    }
    await slow.commit().execute()
    await reader.poll()
    await reader.poll()
    expect(reader.labels).toEqual(['one', 'two', 'three', 'slow'])
  })
})

describe('many writers, two sealers and a reader at once', () => {
  it('leave exactly the committed events, numbered without gaps, each once, in an unbroken chain', async () => {
    const teams = [await createTeam(service), await createTeam(service)]
    const [watched] = teams as [Team]
    const committed = new Map<number, string[]>(teams.map(({ organizationId }) => [organizationId, []]))
    const at = now
    now = new Date(now.getTime() + 2 * minuteMs)
    const reader = createReader(watched)
    let areWriting = true
    const seal = async (db: Db) => {
      while (areWriting) {
        await sealEvents(db)
        await setImmediate()
      }
    }
    const read = async () => {
      while (areWriting) await reader.poll()
    }
    const write = async (writer: number) => {
      for (let index = 0; index < 25; index += 1) {
        const { organizationId, owner } = teams[(writer + index) % 2] as Team
        const label = `${writer}/${index}`
        const trx = await (pools[2 + (writer % 2)] as Db).startTransaction().execute()
        await record(trx, { organizationId, at, doer: describePerson(owner.userId), label })
        if ((writer * 25 + index) % 7 === 0) {
          await trx.rollback().execute()
          continue
        }
        await trx.commit().execute()
        committed.get(organizationId)?.push(label)
      }
    }
    const others = [seal(pools[0] as Db), seal(pools[1] as Db), read()]
    await Promise.all(Array.from({ length: 40 }, (_, writer) => write(writer)))
    areWriting = false
    await Promise.all(others)
    while ((await reader.poll()) > 0);

    expect(reader.labels.toSorted()).toEqual(committed.get(watched.organizationId)?.toSorted())
    for (const { organizationId } of teams) {
      const rows = await service.deps.db
        .selectFrom('audit_events')
        .select(['seq', 'event'])
        .where('organization_id', '=', organizationId)
        .orderBy('seq')
        .execute()
      expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, index) => index + 1))
      const labels = readLabels(rows.map(({ event }) => JSON.parse(event))).filter((label) => label !== undefined)
      expect(labels.toSorted()).toEqual(committed.get(organizationId)?.toSorted())
    }
    expect((await verifyChains(service.deps.db)).problems).toEqual([])
  })
})

describe('a sealer that is ended in the middle', () => {
  it('loses nothing and repeats nothing', async () => {
    team = await createTeam(service)
    const { organizationId } = team
    const doer = describePerson(team.owner.userId)
    const labels = Array.from({ length: 700 }, (_, index) => String(index))
    await recordAll(
      service.deps.db,
      labels.map((label) => ({ organizationId, at: now, doer, label })),
    )
    const [victim] = pools as [Db]
    // Stands in the way of the last statement of a batch, so that the end comes when all the others are done.
    const obstacle = await service.deps.db.startTransaction().execute()
    await sql`lock table audit_events in share mode`.execute(obstacle)
    const sealing = sealEvents(victim)
    sealing.catch(() => undefined)
    await endWaiting(service.deps.db)
    await expect(sealing).rejects.toThrow()
    await obstacle.rollback().execute()
    now = new Date(now.getTime() + 2 * minuteMs)
    const reader = createReader(team)
    while ((await reader.poll()) > 0);
    expect(reader.labels).toEqual(labels)
    expect((await verifyChains(service.deps.db)).problems).toEqual([])
  })
})

/** Ends the connection that waits for a lock, as a crash of its instance does. */
async function endWaiting(db: Db): Promise<void> {
  for (;;) {
    const { rows } = await sql<{ ended: boolean }>`
      select pg_terminate_backend(pid) as ended from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like 'insert into "audit_events"%'`.execute(
      db,
    )
    if (rows.length > 0) return
    await setImmediate()
  }
}
