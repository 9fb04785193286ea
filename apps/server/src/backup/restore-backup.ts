import { join, resolve } from 'node:path'
import { sql } from 'kysely'
import type { Logger } from 'pino'
import type { BlobStore } from '../blobs/blob-store.ts'
import { copyBlob, forEachBlob } from '../blobs/copy-blob.ts'
import { createDb, createPool, type Db } from '../db/connection.ts'
import { isKnownMigration, migrateTo, migrateToLatest } from '../db/migrate.ts'
import { createPartition, type MonthlyTable, parsePartition } from '../db/month-partitions.ts'
import { createJobs, type Jobs } from '../jobs/jobs.ts'
import { listOthers, readBlobList } from './blob-list.ts'
import { findOrigin, hasTables, listReferences, markOrigin } from './catalog.ts'
import { copyIn } from './copy-table.ts'
import type { BackupTable, Manifest } from './manifest.ts'
import { orderByReferences } from './rules.ts'
import { allowLongStatements, openSession, type Session } from './session.ts'
import { type VerifiedBackup, verifyBackup } from './verify-backup.ts'

export type RestoreTarget = { connectionString: string; blobs: BlobStore; log: Logger }

/** `isNew`: false when an earlier restore of the same backup had finished, as one may that was killed at its end. */
export type RestoreSummary = { manifest: Manifest; isNew: boolean }

/**
 * Fills an empty database and an empty store. The blobs come first, each at once; then the database, in one transaction: a
 * restore that was broken off has left nothing but blobs, and is started again.
 */
export async function restoreBackup(target: RestoreTarget, folder: string): Promise<RestoreSummary> {
  const backup = await verifyBackup(resolve(folder))
  const { manifest } = backup
  if (!isKnownMigration(manifest.schema)) {
    throw new Error(`The backup was made by a newer version of Godwit (its schema is ${manifest.schema}).`)
  }
  const session = await openSession(target.connectionString)
  try {
    if ((await findOrigin(session.client)) === nameOrigin(manifest)) return { manifest, isNew: false }
    if (await hasTables(session.client)) {
      throw new Error('The database is not empty. Restore into a new one, on which no Godwit has been started.')
    }
    await requireEmptyStore(target.blobs, backup)
    await forEachBlob(readBlobList(backup.blobListPath), async (blob) => {
      await copyBlob(backup.blobs, target.blobs, blob)
    })
    await withJobs(target, async (jobs) => await loadDatabase(session, jobs, backup))
    return { manifest, isNew: true }
  } finally {
    await session.end()
  }
}

function nameOrigin({ installation, made_at: madeAt }: Manifest): string {
  return `restored from the backup of ${madeAt} of ${installation}`
}

/** Blobs of this backup may be there: those of a restore that was broken off. */
async function requireEmptyStore(blobs: BlobStore, { blobListPath }: VerifiedBackup): Promise<void> {
  for await (const key of listOthers(blobs, readBlobList(blobListPath))) {
    throw new Error(`The blob store is not empty: it holds ${key}, which the backup does not have.`)
  }
}

/** The queue makes its tables by itself, outside of the transaction: empty, they are no obstacle to another restore. */
async function withJobs(target: RestoreTarget, use: (jobs: Jobs) => Promise<void>): Promise<void> {
  const db = createDb(createPool(target.connectionString, 2))
  try {
    const jobs = await createJobs({ db, log: target.log })
    try {
      await use(jobs)
    } finally {
      await jobs.stop()
    }
  } finally {
    await db.destroy()
  }
}

async function loadDatabase({ client, db }: Session, jobs: Jobs, { dir, manifest }: VerifiedBackup): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await allowLongStatements(client)
    await migrateTo(trx, { name: manifest.schema })
    const tables = new Map(manifest.tables.map((table) => [table.name, table]))
    for (const name of orderByReferences([...tables.keys()], await listReferences(client))) {
      const table = tables.get(name)
      if (table !== undefined) await loadTable({ client, db: trx }, table, join(dir, manifest.folder))
    }
    await migrateToLatest(trx)
    await forgetUnfinishedUploads(trx)
    await requestWork(trx, jobs)
    await markOrigin(trx, nameOrigin(manifest))
  })
}

async function loadTable({ client, db }: Omit<Session, 'end'>, table: BackupTable, folder: string): Promise<void> {
  for (const name of table.partitions) {
    const partition = parsePartition(table.name as MonthlyTable, name)
    if (partition === undefined) throw new Error(`${name} is not the name of a month of ${table.name}`)
    await createPartition(db, partition)
  }
  const path = join(folder, table.file.name)
  const rowCount = await copyIn(client, table, path)
  if (rowCount !== table.row_count) {
    throw new Error(`${path}: ${rowCount} rows were loaded into ${table.name} instead of ${table.row_count}`)
  }
  for (const { column, last_value: lastValue } of table.identities) {
    if (lastValue !== null) {
      await sql`select setval(pg_get_serial_sequence(quote_ident(${table.name}), ${column}), ${lastValue}::bigint)`.execute(
        db,
      )
    }
  }
}

/** The backup has no bytes of them: they start again. */
async function forgetUnfinishedUploads(db: Db): Promise<void> {
  await db.updateTable('blobs').set({ received_bytes: 0, parts: [] }).where('sha256', 'is', null).execute()
}

/** Jobs are not in a backup. A server requests most of its work when it starts; this is what it cannot know of. */
async function requestWork(db: Db, jobs: Jobs): Promise<void> {
  await jobs.requestBlobSweep(db)
  const { rows } = await sql<{ app_id: string }>`
    select app_id from activity_apps union select app_id from activity_segments union select app_id from device_events
    except select id from apps`.execute(db)
  for (const { app_id: appId } of rows) await jobs.requestEventRemoval(db, { appId })
}
