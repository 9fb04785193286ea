import { sql } from 'kysely'
import { expect } from 'vitest'
import type { Db } from '../../src/db/connection.ts'

/** Runs something while a statement's locks are held, in a transaction of its own, which is committed afterwards. */
export async function whileHolding(db: Db, lock: string, run: () => Promise<void>): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await sql.raw(lock).execute(trx)
    await run()
  })
}

/** Waits until this many connections to this database wait for locks. */
export async function waitForBlocked(db: Db, count: number): Promise<void> {
  const countWaiting = async () => {
    const { rows } = await sql<{ waiting: number }>`
      select count(*)::int as waiting from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
    return rows[0]?.waiting ?? 0
  }
  await expect.poll(countWaiting, { timeout: 10_000, interval: 20 }).toBeGreaterThanOrEqual(count)
}
