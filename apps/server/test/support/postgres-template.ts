import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import type { TestProject } from 'vitest/node'
import { createDb, createPool } from '../../src/db/connection.ts'
import { migrateToLatest } from '../../src/db/migrate.ts'
import { startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'
import { createJobs } from '../../src/jobs/jobs.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** A real PostgreSQL; its database `godwit` is migrated and only ever cloned. */
    postgresUrl: string
  }
}

/** Starts one PostgreSQL for the whole run and migrates the database that every test file clones. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dir = await mkdtemp(join(tmpdir(), 'godwit-test-'))
  const log = pino({ level: 'silent' })
  const postgres = await startEmbeddedPostgres({
    dataDir: join(dir, 'postgres'),
    log,
    durable: false,
    maxConnections: 300,
  })
  const pool = createPool(postgres.connectionString)
  const db = createDb(pool)
  await migrateToLatest(db)
  const jobs = await createJobs({ db, log })
  await jobs.stop()
  await db.destroy()
  project.provide('postgresUrl', postgres.connectionString)
  return async () => {
    await postgres.stop()
    await rm(dir, { recursive: true, force: true })
  }
}
