import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { readConfig } from '../../apps/server/src/config.ts'
import { createDeps } from '../../apps/server/src/create-deps.ts'
import { createDb, createPool, type Db } from '../../apps/server/src/db/connection.ts'
import { migrateToLatest } from '../../apps/server/src/db/migrate.ts'
import { startEmbeddedPostgres } from '../../apps/server/src/embedded-postgres/index.ts'
import { createAccount } from '../../apps/server/src/users/actions.ts'
import { atTheEnd, runAndClose } from '../closing.ts'
import { type LoadedLog, loadEvents } from './load-events.ts'
import { measurePages } from './read-pages.ts'
import { measureWriters } from './write-events.ts'

/**
 * The audit log with 10 million events in one organization over 13 months: how long a page takes, and what recording costs
 * the writers. Nothing here fails on a time: a figure is for a person to read.
 *
 *   npm run bench:audit -- [--events 10000000] [--pages 25] [--only read|write] [--keep <folder>]
 *
 * `--keep` leaves the loaded database in a folder, and takes it from there the next time.
 */
const { values: options } = parseArgs({
  options: {
    events: { type: 'string', default: '10000000' },
    pages: { type: 'string', default: '25' },
    only: { type: 'string' },
    keep: { type: 'string' },
  },
})

const silent = pino({ level: 'warn' })
await runAndClose(async () => {
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}`)
  if (options.only !== 'write') await benchReading()
  if (options.only !== 'read') await benchWriting()
})

async function benchReading(): Promise<void> {
  // Not durable: only the load would be slower, and no page is written while they are read.
  const { db, dataDir, connectionString } = await openDatabase({ durable: false, keep: options.keep })
  const log = (await findLog(db)) ?? (await makeLog(db))
  const config = readConfig({ GODWIT_DATA_DIR: dataDir })
  const { deps, close } = await createDeps({ config, log: silent, connectionString, clock: () => log.end })
  atTheEnd(close)
  await measurePages(deps, { log, pages: Number(options.pages) })
}

async function benchWriting(): Promise<void> {
  const { db } = await openDatabase({ durable: true, keep: undefined })
  const { user, organization } = await makeAccount(db)
  await measureWriters(db, { userId: user.id, organizationId: organization.id })
}

async function openDatabase({ durable, keep }: { durable: boolean; keep: string | undefined }) {
  const dataDir = keep ?? (await mkdtemp(join(tmpdir(), 'godwit-bench-audit-')))
  if (keep === undefined) atTheEnd(() => rm(dataDir, { recursive: true, force: true }))
  const postgres = await startEmbeddedPostgres({ dataDir, log: silent, durable })
  atTheEnd(() => postgres.stop())
  const pool = createPool(postgres.connectionString, 40)
  // The load is one long statement; the service's limits are for its own.
  Object.assign(pool.options, { statement_timeout: 0, query_timeout: 0, idle_in_transaction_session_timeout: 0 })
  // Connections that have been told to end may meet the end of PostgreSQL first.
  pool.on('error', () => undefined)
  const db = createDb(pool)
  atTheEnd(() => db.destroy())
  await migrateToLatest(db)
  return { db, dataDir, connectionString: postgres.connectionString }
}

async function makeAccount(db: Db) {
  const account = await createAccount(db, {
    email: `${randomUUID()}@example.com`,
    displayName: 'Bench',
    jwtIssuer: 'https://bench.example.com',
    isEmailVerified: true,
  })
  if (account === undefined) throw new Error('the account exists already')
  return account
}

async function makeLog(db: Db): Promise<LoadedLog> {
  const { organization } = await makeAccount(db)
  const startedAt = performance.now()
  const log = await loadEvents(db, { organizationId: organization.id, events: Number(options.events), now: new Date() })
  console.log(`loaded ${options.events} events in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  await db
    .insertInto('server_secrets')
    .values({ name: 'bench-audit-log', value: Buffer.from(JSON.stringify(log)) })
    .execute()
  return log
}

/** The log that a run with `--keep` has left. */
async function findLog(db: Db): Promise<LoadedLog | undefined> {
  const row = await db
    .selectFrom('server_secrets')
    .select('value')
    .where('name', '=', 'bench-audit-log')
    .executeTakeFirst()
  if (row === undefined) return undefined
  const log = JSON.parse(row.value.toString()) as LoadedLog
  return { ...log, start: new Date(log.start), end: new Date(log.end) }
}
