import { join } from 'node:path'
import { pino } from 'pino'
import { openBlobs } from '../blobs/open-blob-store.ts'
import { type Config, readConfig } from '../config.ts'
import { createDb, createPool } from '../db/connection.ts'
import { migrateToLatest } from '../db/migrate.ts'
import type { Deps } from '../deps.ts'
import { connectOrStartEmbeddedPostgres } from '../embedded-postgres/connect-or-start.ts'
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '../embedded-postgres/index.ts'

/** What a command needs of the service: no jobs, no listeners, no blobs. */
export type AdminDeps = Pick<Deps, 'config' | 'db' | 'clock' | 'log'>

export type AdminStores = Pick<Deps, 'config' | 'blobs' | 'clock' | 'log'> & { connectionString: string }

/** Does something on the database of the server, whether the server runs or not, and lets go of it. */
export async function withAdminDeps<T>(use: (deps: AdminDeps) => Promise<T>): Promise<T> {
  const config = readConfig(process.env)
  const log = createAdminLog()
  return await withDatabase(config, log, connectOrStartEmbeddedPostgres, async (connectionString) => {
    const pool = createPool(connectionString, 2)
    pool.on('error', () => undefined)
    const db = createDb(pool)
    try {
      await migrateToLatest(db)
      return await use({ config, db, clock: () => new Date(), log })
    } finally {
      await db.destroy()
    }
  })
}

/** Does something on the database as it is, whatever its schema, and the blobs. */
export async function withAdminStores<T>(use: (stores: AdminStores) => Promise<T>): Promise<T> {
  return await withStores(connectOrStartEmbeddedPostgres, use)
}

/** The same, where there may be no embedded database yet. No server may have it. */
export async function withNewAdminStores<T>(use: (stores: AdminStores) => Promise<T>): Promise<T> {
  return await withStores((options) => startEmbeddedPostgres({ ...options, lockWaitMs: 0 }), use)
}

type OpenEmbedded = (options: EmbeddedPostgresOptions) => Promise<Pick<EmbeddedPostgres, 'connectionString' | 'stop'>>

async function withStores<T>(openEmbedded: OpenEmbedded, use: (stores: AdminStores) => Promise<T>): Promise<T> {
  const config = readConfig(process.env)
  const log = createAdminLog()
  return await withDatabase(config, log, openEmbedded, async (connectionString) => {
    const blobs = await openBlobs(config)
    return await use({ config, blobs, clock: () => new Date(), log, connectionString })
  })
}

/** Standard output is for what was asked for. */
export function createAdminLog(): Deps['log'] {
  return pino({ level: 'warn', base: undefined }, pino.destination(2))
}

async function withDatabase<T>(
  config: Config,
  log: Deps['log'],
  openEmbedded: OpenEmbedded,
  use: (connectionString: string) => Promise<T>,
): Promise<T> {
  // Past a pooler, which refuses to be told how long statements may take.
  const connectionString = config.databaseDirectUrl ?? config.databaseUrl
  if (connectionString !== undefined) return await use(connectionString)
  const embedded = await openEmbedded({ dataDir: join(config.dataDir, 'postgres'), log })
  try {
    return await use(embedded.connectionString)
  } finally {
    await embedded.stop()
  }
}
