import { sql } from 'kysely'
import type { Db } from '../../db/connection.ts'
import {
  createPartition,
  dropPartition,
  hasPartition,
  lockForDrop,
  type MonthPartition,
} from '../../db/month-partitions.ts'
import type { UnitKind } from './bitmap-units.ts'

export const tableOf = { hours: 'activity_hours', days: 'activity_days' } as const satisfies Record<UnitKind, string>

/** Any number will do, as long as nothing else in this database locks it. */
const partitionLock = 7_301_997

/** Makes a partition, unless it is there: several processes may want it at once. */
export async function ensurePartition(db: Db, partition: MonthPartition): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await sql`select from pg_advisory_xact_lock(${sql.lit(partitionLock)})`.execute(trx)
    if (!(await hasPartition(trx, partition))) await createPartition(trx, partition)
  })
}

export async function dropMonth(db: Db, input: { kind: UnitKind; name: string }): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockForDrop(trx, { table: tableOf[input.kind] })
    await dropPartition(trx, input)
  })
}
