import { join } from 'node:path'
import { pino } from 'pino'
import { type Config, readConfig } from '../config.ts'
import { createDb, createPool } from '../db/connection.ts'
import { migrateToLatest } from '../db/migrate.ts'
import type { Deps } from '../deps.ts'
import { connectOrStartEmbeddedPostgres } from '../embedded-postgres/connect-or-start.ts'

/** What a command needs of the service: no jobs, no listeners, no blobs. */
export type AdminDeps = Pick<Deps, 'config' | 'db' | 'clock' | 'log'>

/** Does something on the database of the server, whether the server runs or not, and lets go of it. */
export async function withAdminDeps<T>(use: (deps: AdminDeps) => Promise<T>): Promise<T> {
  const config = readConfig(process.env)
  // Standard output is for what was asked for.
  const log = pino({ level: 'warn', base: undefined }, pino.destination(2))
  const database = await openDatabase(config, log)
  try {
    const pool = createPool(database.connectionString, 2)
    pool.on('error', () => undefined)
    const db = createDb(pool)
    try {
      await migrateToLatest(db)
      return await use({ config, db, clock: () => new Date(), log })
    } finally {
      await db.destroy()
    }
  } finally {
    await database.stop()
  }
}

async function openDatabase(config: Config, log: Deps['log']) {
  if (config.databaseUrl !== undefined) return { connectionString: config.databaseUrl, stop: async () => {} }
  return await connectOrStartEmbeddedPostgres({ dataDir: join(config.dataDir, 'postgres'), log })
}
