import { EventEmitter } from 'node:events'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import type { Config } from '../config.ts'
import type { DatabaseMeter } from './database-meter.ts'
import type { GuardedPool } from './guarded-pool.ts'
import type { Database } from './tables.ts'

export type Db = Kysely<Database>

const int8TypeId = 20

const types: pg.CustomTypesConfig = {
  getTypeParser: ((typeId: number, format?: 'text' | 'binary') =>
    typeId === int8TypeId ? Number : pg.types.getTypeParser(typeId, format)) as typeof pg.types.getTypeParser,
}

/** `isPooled`: a pooler stands between, which refuses to be told of limits. */
export type StatementLimit = { timeoutMs: number; isPooled: boolean }

export function readStatementLimit(config: Pick<Config, 'statementTimeoutMs' | 'databaseDirectUrl'>): StatementLimit {
  return { timeoutMs: config.statementTimeoutMs, isPooled: config.databaseDirectUrl !== undefined }
}

/** The server has the first word; one that is silent is not waited for much longer. */
const silenceMs = 5000

export function createPool(
  connectionString: string,
  maxConnections = 10,
  { timeoutMs, isPooled }: StatementLimit = { timeoutMs: 15_000, isPooled: false },
): pg.Pool {
  const pool = new pg.Pool({
    connectionString,
    types,
    max: maxConnections,
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    // A statement of the control door takes milliseconds; one that takes this long is stuck, or its server is.
    query_timeout: timeoutMs + silenceMs,
    ...(isPooled ? {} : { statement_timeout: timeoutMs, idle_in_transaction_session_timeout: 30_000 }),
    application_name: 'godwit',
  })
  // The pool listens only to idle clients. One that is lost between two statements of a transaction would otherwise end
  // the process; its next statement fails in any case.
  pool.on('connect', (client) => {
    client.on('error', () => undefined)
    endWhenLate(client)
  })
  return pool
}

/**
 * Ends a connection on which an answer did not come in time. `pg` gives up on the query alone: whoever has the connection
 * next would wait for the same answer. The statement may run on: only the server's own limit cancels it.
 */
function endWhenLate(client: pg.PoolClient): void {
  const end = (error: Error) => {
    // From then on the pool takes it for ended, and drops it when it is given back.
    if (error.message === 'Query read timeout') void client.end()
  }
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  const watched = (...args: unknown[]) => {
    const answer = query(...args)
    if (answer instanceof Promise) answer.catch(end)
    else if (answer instanceof EventEmitter) answer.once('error', end)
    return answer
  }
  client.query = watched as typeof client.query
}

export function createDb(pool: pg.Pool | GuardedPool, meter?: DatabaseMeter): Db {
  if (meter === undefined) return new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
  return new Kysely<Database>({ dialect: new PostgresDialect({ pool: meter.watch(pool) }), log: meter.onQuery })
}
