import { sql } from 'kysely'
import { pino } from 'pino'
import { hasOutboxEvents } from '../../apps/server/src/audit/queries.ts'
import { recordEvent } from '../../apps/server/src/audit/record-event.ts'
import { startSealing } from '../../apps/server/src/audit/sealer.ts'
import type { Db } from '../../apps/server/src/db/connection.ts'
import type { Actor } from '../../apps/server/src/http/actor.ts'

const rounds = 5
const roundMs = 4000
const writers = [1, 8, 32]

/**
 * Transactions that change a row of an app each, with and without their event, in turns. The service's sealer runs in
 * both; it has something to do only in one.
 */
export async function measureWriters(db: Db, input: { userId: number; organizationId: number }): Promise<void> {
  const { organizationId } = input
  await sql`
    insert into apps (id, organization_id, display_name)
    select 'app-' || n, ${organizationId}::bigint, 'App ' || n from generate_series(0, ${Math.max(...writers) - 1}::int) n`.execute(
    db,
  )
  const sealer = startSealing({ db, clock: () => new Date(), log: pino({ level: 'warn' }) })
  console.log(
    `\nTransactions per second, one organization, medians of ${rounds} alternating rounds of ${roundMs / 1000} s.\n`,
  )
  console.log('| writers | without events | with events | times slower |')
  console.log('|---:|---:|---:|---:|')
  for (const count of writers) {
    const rates: { without: number[]; with: number[] } = { without: [], with: [] }
    await write(db, { ...input, writers: count, durationMs: 1000, isRecorded: true })
    for (let round = 0; round < rounds; round += 1) {
      const order = round % 2 === 0 ? (['without', 'with'] as const) : (['with', 'without'] as const)
      for (const kind of order) {
        rates[kind].push(
          await write(db, { ...input, writers: count, durationMs: roundMs, isRecorded: kind === 'with' }),
        )
        // What a round leaves is not the next one's to seal.
        while (await hasOutboxEvents(db)) await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }
    const [without, recorded] = [median(rates.without), median(rates.with)]
    console.log(`| ${count} | ${without.toFixed(0)} | ${recorded.toFixed(0)} | ${(without / recorded).toFixed(2)} |`)
  }
  await sealer.stop()
}

async function write(
  db: Db,
  input: { userId: number; organizationId: number; writers: number; durationMs: number; isRecorded: boolean },
): Promise<number> {
  const actor = describeWriter(input.userId)
  const until = performance.now() + input.durationMs
  let total = 0
  const run = async (writer: number) => {
    const app = { id: `app-${writer}`, name: `App ${writer}` }
    while (performance.now() < until) {
      await db.transaction().execute(async (trx) => {
        // What an action does: lock, judge, change.
        await trx.selectFrom('apps').selectAll().where('id', '=', app.id).forUpdate().executeTakeFirstOrThrow()
        await trx.updateTable('apps').set({ updated_at: new Date() }).where('id', '=', app.id).execute()
        if (!input.isRecorded) return
        const resources = [{ type: 'app' as const, uid: app.id }]
        const { organizationId } = input
        await recordEvent({ clock: () => new Date() }, trx, actor, {
          operation: 'app.update',
          organizationId,
          app,
          resources,
        })
      })
      total += 1
    }
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: input.writers }, (_, writer) => run(writer)))
  return total / ((performance.now() - startedAt) / 1000)
}

function describeWriter(userId: number): Actor {
  return {
    kind: 'person',
    userId,
    email: 'writer@example.com',
    name: 'Writer',
    credential: { kind: 'api_key', id: 1, name: 'bench' },
    allows: new Set(),
    source: { address: '203.0.113.7', userAgent: 'bench', correlationId: undefined },
  }
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
