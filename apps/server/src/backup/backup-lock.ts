import { sql } from 'kysely'
import type pg from 'pg'
import type { Db } from '../db/connection.ts'

/** Any number will do, as long as nothing else in this database locks it. */
const backupLock = 7_301_998
/** A sweep holds its lock for one batch; a backup for much longer. */
const waitMs = 60_000
const lockNotAvailable = '55P03'

/**
 * Keeps the bytes of blobs where they are until the connection ends. It must be held before the snapshot is taken: what was
 * removed in between would be missing in the backup. In a transaction, so that a pooler in between keeps the session.
 */
export async function holdBackupLock(client: pg.Client): Promise<void> {
  await client.query('begin')
  await client.query(`set local lock_timeout = ${waitMs}`)
  await client.query('set local idle_in_transaction_session_timeout = 0')
  try {
    await client.query('select pg_advisory_xact_lock($1)', [backupLock])
  } catch (error) {
    if ((error as { code?: unknown }).code !== lockNotAvailable) throw error
    throw new Error('Another backup of this database is running.', { cause: error })
  }
}

/** False while a backup runs: then no bytes may be removed. Holds for the transaction; any number may do so at once. */
export async function canRemoveBytes(db: Db): Promise<boolean> {
  const { rows } = await sql<{ free: boolean }>`
    select pg_try_advisory_xact_lock_shared(${backupLock}) as free`.execute(db)
  return rows[0]?.free === true
}
