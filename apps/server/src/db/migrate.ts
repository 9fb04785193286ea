import { sql } from 'kysely'
import { DEFAULT_MIGRATION_TABLE, type Migration, Migrator } from 'kysely/migration'
import type { Db } from './connection.ts'
import { isDatabaseUnavailable } from './errors.ts'
import * as initial from './migrations/0001-initial.ts'
import * as peopleAndMachines from './migrations/0002-people-and-machines.ts'
import * as auditLog from './migrations/0003-audit-log.ts'
import * as deviceActivity from './migrations/0004-device-activity.ts'
import * as releaseAnalysis from './migrations/0005-release-analysis.ts'
import * as firstDevice from './migrations/0006-first-device.ts'
import * as blobParts from './migrations/0007-blob-parts.ts'

/** In order, forward only. A migration that has been released is never edited. */
const migrations: Record<string, Migration> = {
  '0001-initial': initial,
  '0002-people-and-machines': peopleAndMachines,
  '0003-audit-log': auditLog,
  '0004-device-activity': deviceActivity,
  '0005-release-analysis': releaseAnalysis,
  '0006-first-device': firstDevice,
  '0007-blob-parts': blobParts,
}

/**
 * Brings the schema up to date. Kysely holds an advisory lock, so that two servers may start at once. A schema that is newer
 * than this server is left as it is: during a rolling upgrade the previous version starts and serves on it.
 */
export async function migrateToLatest(db: Db): Promise<void> {
  if (await isSchemaNewer(db)) return
  const { error } = await createMigrator(db).migrateToLatest()
  if (error === undefined) return
  if (isDatabaseUnavailable(error)) throw error
  // A newer server may have been faster.
  if (!(await isSchemaNewer(db))) throw new Error('the database could not be migrated', { cause: error })
}

/** Whether all that we know was done, and more. */
async function isSchemaNewer(db: Db): Promise<boolean> {
  const { rows: tables } = await sql<{ found: boolean }>`
    select to_regclass(${DEFAULT_MIGRATION_TABLE}) is not null as found`.execute(db)
  if (tables[0]?.found !== true) return false
  const { rows } = await sql<{ name: string }>`select name from ${sql.table(DEFAULT_MIGRATION_TABLE)}`.execute(db)
  const done = new Set(rows.map(({ name }) => name))
  return done.size > Object.keys(migrations).length && Object.keys(migrations).every((name) => done.has(name))
}

/** The schema as it was after a migration, in an empty database. */
export async function migrateTo(db: Db, input: { name: string }): Promise<void> {
  const { error } = await createMigrator(db).migrateTo(input.name)
  if (error !== undefined) throw new Error('the database could not be migrated', { cause: error })
}

export function isKnownMigration(name: string): boolean {
  return Object.hasOwn(migrations, name)
}

export function findLatestMigration(): string {
  return Object.keys(migrations).toSorted().at(-1) ?? ''
}

function createMigrator(db: Db): Migrator {
  return new Migrator({ db, provider: { getMigrations: async () => migrations } })
}
