import { Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely'
import pg from 'pg'
import type { Db } from '../db/connection.ts'
import type { Database } from '../db/tables.ts'

/** One connection that is given all the time it needs, for COPY as well as for queries: `db` is the same connection. */
export type Session = { client: pg.Client; db: Db; end: () => Promise<void> }

export async function openSession(connectionString: string): Promise<Session> {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: 5000,
    keepAlive: true,
    application_name: 'godwit backup',
  })
  // A connection that is lost fails the statement that runs, or the next.
  client.on('error', () => undefined)
  await client.connect()
  const connect = async () =>
    ({ query: client.query.bind(client), release: () => undefined }) as unknown as PostgresPoolClient
  const end = async () => await client.end()
  return {
    client,
    db: new Kysely<Database>({ dialect: new PostgresDialect({ pool: { connect, end, options: {} } }) }),
    end,
  }
}

/** For the transaction that runs: what PostgreSQL is set to give up on is meant for requests. */
export async function allowLongStatements(client: pg.Client): Promise<void> {
  await client.query('set local statement_timeout = 0')
  await client.query('set local idle_in_transaction_session_timeout = 0')
}
