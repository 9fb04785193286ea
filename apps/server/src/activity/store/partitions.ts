import { sql } from 'kysely'
import type { Db } from '../../db/connection.ts'
import type { UnitKind } from './bitmap-units.ts'

export const tableOf = { hours: 'activity_hours', days: 'activity_days' } as const satisfies Record<UnitKind, string>

/** Any number will do, as long as nothing else in this database locks it. */
const partitionLock = 7_301_997

/** The month of a time (Unix ms), UTC, which is one partition. */
export function partitionOf(kind: UnitKind, timeMs: number): { name: string; start: Date; end: Date } {
  const time = new Date(timeMs)
  const [year, month] = [time.getUTCFullYear(), time.getUTCMonth()]
  return {
    name: `${tableOf[kind]}_${String(year).padStart(4, '0')}_${String(month + 1).padStart(2, '0')}`,
    start: new Date(Date.UTC(year, month)),
    end: new Date(Date.UTC(year, month + 1)),
  }
}

/**
 * Makes the partition of a month, unless it is there. Attached, because `create table … partition of` would wait for
 * everybody who reads the table, and everybody would wait for it.
 */
export async function createPartition(db: Db, input: { kind: UnitKind; timeMs: number }): Promise<void> {
  const { name, start, end } = partitionOf(input.kind, input.timeMs)
  const [from, to] = [sql.lit(start.toISOString()), sql.lit(end.toISOString())]
  const parent = sql.table(tableOf[input.kind])
  await db.transaction().execute(async (trx) => {
    await sql`select from pg_advisory_xact_lock(${sql.lit(partitionLock)})`.execute(trx)
    const { rows } = await sql<{ exists: boolean }>`
      select to_regclass(${sql.lit(name)}) is not null as exists`.execute(trx)
    if (rows[0]?.exists === true) return
    await sql`create table ${sql.table(name)} (like ${parent} including all)`.execute(trx)
    await sql`alter table ${parent} attach partition ${sql.table(name)} for values from (${from}) to (${to})`.execute(
      trx,
    )
  })
}

/** The months all of which is older than `keepFrom`. */
export async function listOldPartitions(db: Db, input: { kind: UnitKind; keepFrom: Date }): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select child.relname::text as name from pg_inherits
    join pg_class child on child.oid = inhrelid
    where inhparent = ${sql.lit(tableOf[input.kind])}::regclass order by child.relname`.execute(db)
  return rows.map(({ name }) => name).filter((name) => isOver(name, input.keepFrom))
}

/** Gives up soon behind a long reader: whoever wants to read would have to wait behind it. */
export async function dropPartition(db: Db, input: { kind: UnitKind; name: string }): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await sql`set local lock_timeout = '1s'`.execute(trx)
    await sql`lock table ${sql.table(tableOf[input.kind])} in access exclusive mode`.execute(trx)
    // Another instance may have been faster.
    await sql`drop table if exists ${sql.table(input.name)}`.execute(trx)
  })
}

function isOver(name: string, keepFrom: Date): boolean {
  const [, year, month] = /_(\d{4,})_(\d{2})$/.exec(name) ?? []
  return year !== undefined && new Date(Date.UTC(Number(year), Number(month))) <= keepFrom
}
