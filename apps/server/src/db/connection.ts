import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { DatabaseMeter } from './database-meter.ts'
import type { GuardedPool } from './guarded-pool.ts'
import type { Database } from './tables.ts'

export type Db = Kysely<Database>

const int8TypeId = 20

const types: pg.CustomTypesConfig = {
  getTypeParser: ((typeId: number, format?: 'text' | 'binary') =>
    typeId === int8TypeId ? Number : pg.types.getTypeParser(typeId, format)) as typeof pg.types.getTypeParser,
}

/** `statementTimeoutMs` null: a pooler stands between, which refuses such settings. */
export function createPool(
  connectionString: string,
  maxConnections = 10,
  statementTimeoutMs: number | null = 15_000,
): pg.Pool {
  const pool = new pg.Pool({
    connectionString,
    types,
    max: maxConnections,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    // A statement of the control door takes milliseconds; one that takes this long is stuck, or its server is.
    ...(statementTimeoutMs === null
      ? {}
      : {
          statement_timeout: statementTimeoutMs,
          query_timeout: statementTimeoutMs + 5_000,
          idle_in_transaction_session_timeout: 30_000,
        }),
    application_name: 'godwit',
  })
  // The pool listens only to idle clients. One that is lost between two statements of a transaction would otherwise end
  // the process; its next statement fails in any case.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

export function createDb(pool: pg.Pool | GuardedPool, meter?: DatabaseMeter): Db {
  if (meter === undefined) return new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool: meter.watch(pool) }), log: meter.onQuery })
}
