import { sql } from 'kysely'
import { monthOf } from '../time.ts'
import type { Db } from './connection.ts'

/** Tables of which each partition is a month, UTC. */
export type MonthlyTable = 'audit_events' | 'activity_hours' | 'activity_days'

const partitionName = /_(\d{4,})_(\d{2})$/

export type MonthPartition = { table: MonthlyTable; name: string; start: Date; end: Date }

/** The partition in which a time lies. */
export function partitionOf(table: MonthlyTable, time: Date): MonthPartition {
  const [year, month] = [time.getUTCFullYear(), time.getUTCMonth() + 1]
  const name = `${table}_${String(year).padStart(4, '0')}_${String(month).padStart(2, '0')}`
  return { table, name, ...monthOf(time) }
}

/** A partition by its name; undefined when that is not one that `partitionOf` gives. */
export function parsePartition(table: MonthlyTable, name: string): MonthPartition | undefined {
  const [, year, month] = partitionName.exec(name) ?? []
  const partition = partitionOf(table, new Date(Date.UTC(Number(year), Number(month) - 1)))
  return partition.name === name ? partition : undefined
}

/** Whether all of a partition is older than what has to be kept. */
export function isPartitionOver(name: string, keepFrom: Date): boolean {
  const [, year, month] = partitionName.exec(name) ?? []
  return year !== undefined && new Date(Date.UTC(Number(year), Number(month))) <= keepFrom
}

export async function hasPartition(db: Db, { name }: { name: string }): Promise<boolean> {
  const { rows } = await sql<{ exists: boolean }>`select to_regclass(${name}) is not null as exists`.execute(db)
  return rows[0]?.exists === true
}

/**
 * Attached, because `create table … partition of` would wait for everybody who reads the table, such as a backup, and
 * everybody would wait for it. Two statements: in a transaction of the caller, who sees to it that there is only one.
 */
export async function createPartition(db: Db, { table, name, start, end }: MonthPartition): Promise<void> {
  const [parent, partition] = [sql.table(table), sql.table(name)]
  const [from, to] = [sql.lit(start.toISOString()), sql.lit(end.toISOString())]
  await sql`create table ${partition} (like ${parent} including all)`.execute(db)
  await sql`alter table ${parent} attach partition ${partition} for values from (${from}) to (${to})`.execute(db)
}

/** Their names, in the order of time. */
export async function listPartitions(db: Db, { table }: { table: MonthlyTable }): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select child.relname::text as name from pg_inherits
    join pg_class child on child.oid = inhrelid
    where inhparent = ${sql.lit(table)}::regclass order by child.relname`.execute(db)
  return rows.map(({ name }) => name)
}

/**
 * Locks a table before one of its partitions is dropped, in a transaction of the caller. Gives up soon behind a long reader:
 * whoever wants to read would have to wait behind it.
 */
export async function lockForDrop(db: Db, { table }: { table: MonthlyTable }): Promise<void> {
  await sql`set local lock_timeout = '1s'`.execute(db)
  await sql`lock table ${sql.table(table)} in access exclusive mode`.execute(db)
}

/** Another instance may have been faster. */
export async function dropPartition(db: Db, { name }: { name: string }): Promise<void> {
  await sql`drop table if exists ${sql.table(name)}`.execute(db)
}
