import { sql } from 'kysely'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createBulkDb, readBinaryRows } from '../../src/activity/store/bulk-reads.ts'
import { createPool } from '../../src/db/connection.ts'
import { isDatabaseUnavailable } from '../../src/db/errors.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../support/database-proxy.ts'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'

/** Given up on after five seconds more. */
const limit = { timeoutMs: 100, isPooled: true }

let database: TestDatabase
const pools: pg.Pool[] = []
const proxies: DatabaseProxy[] = []

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(async () => {
  for (const pool of pools) await pool.end()
  for (const proxy of proxies) await proxy.stop()
  await database.drop()
})

/** One connection, as it is behind a pooler. */
function openPool(connectionString = database.connectionString): pg.Pool {
  const pool = createPool(connectionString, 1, limit)
  pool.on('error', () => undefined)
  pools.push(pool)
  return pool
}

async function findLimits(pool: pg.Pool) {
  const { rows } = await pool.query("select current_setting('statement_timeout') as statement")
  return rows
}

/** Resolves with the error, and says how soon. */
async function failureOf(work: Promise<unknown>): Promise<{ error: unknown; ms: number }> {
  const startedAt = performance.now()
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  return { error, ms: performance.now() - startedAt }
}

describe.concurrent('a statement behind a pooler', () => {
  it('is given up on when nothing answers, and the next one has another connection', async () => {
    const proxy = await startDatabaseProxy(database.connectionString)
    proxies.push(proxy)
    const pool = openPool(proxy.connectionString)
    // No limit was asked for at the start: a pooler would refuse the connection.
    expect(await findLimits(pool)).toEqual([{ statement: '0' }])
    proxy.setMode('swallow')
    const client = await pool.connect()
    const { error, ms } = await failureOf(client.query('select 1'))
    client.release()
    expect(isDatabaseUnavailable(error)).toBe(true)
    expect(ms).toBeLessThan(6000)
    proxy.setMode('pass')
    const startedAt = performance.now()
    expect((await pool.query('select 2 as number')).rows).toEqual([{ number: 2 }])
    expect(performance.now() - startedAt).toBeLessThan(2000)
  })

  it('that is answered too late keeps nobody waiting, and its answer is nobody else’s', async () => {
    const pool = openPool()
    const client = await pool.connect()
    const { error } = await failureOf(client.query("select 'late' as answer from pg_sleep(7)"))
    client.release()
    expect(isDatabaseUnavailable(error)).toBe(true)
    const startedAt = performance.now()
    for (const answer of ['first', 'second'])
      expect((await pool.query('select $1::text as answer', [answer])).rows).toEqual([{ answer }])
    expect(performance.now() - startedAt).toBeLessThan(1000)
  })

  it('of a transaction ends the transaction with it', async () => {
    const pool = openPool()
    const db = createBulkDb(pool)
    const late = db.transaction().execute(async (trx) => {
      await sql`create table left_behind (number int)`.execute(trx)
      await sql`select pg_sleep(7)`.execute(trx)
    })
    const { error, ms } = await failureOf(late)
    expect(isDatabaseUnavailable(error)).toBe(true)
    expect(ms).toBeLessThan(6000)
    const find = () => pool.query("select to_regclass('left_behind') as name")
    expect((await find()).rows).toEqual([{ name: null }])
  })

  it('that reads in bulk is given up on as well', async () => {
    const pool = openPool()
    const db = createBulkDb(pool)
    const { error, ms } = await failureOf(readBinaryRows(db, sql`select 1 from pg_sleep(7)`))
    expect(isDatabaseUnavailable(error)).toBe(true)
    expect(ms).toBeLessThan(6000)
    expect(await readBinaryRows(db, sql`select 1::int`)).toEqual([[Buffer.from([0, 0, 0, 1])]])
  })
})
