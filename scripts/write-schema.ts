import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { createDb, createPool } from '../apps/server/src/db/connection.ts'
import { dumpSchema } from '../apps/server/src/db/dump-schema.ts'
import { migrateToLatest } from '../apps/server/src/db/migrate.ts'
import { startEmbeddedPostgres } from '../apps/server/src/embedded-postgres/index.ts'

/** Migrates an empty database and writes down what came of it. */
const dir = await mkdtemp(join(tmpdir(), 'godwit-schema-'))
const postgres = await startEmbeddedPostgres({ dataDir: dir, log: pino({ level: 'warn' }), durable: false })
const db = createDb(createPool(postgres.connectionString))
await migrateToLatest(db)
await writeFile(new URL('../apps/server/src/db/schema.sql', import.meta.url), await dumpSchema(db))
await db.destroy()
await postgres.stop()
await rm(dir, { recursive: true, force: true })
