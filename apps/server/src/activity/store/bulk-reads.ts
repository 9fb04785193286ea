import { Kysely, PostgresDialect, type PostgresPoolClient, type QueryResult, type RawBuilder, sql } from 'kysely'
import type pg from 'pg'
import { type CopyToStreamQuery, to as copyTo } from 'pg-copy-streams'
import type { Db } from '../../db/connection.ts'
import type { Database } from '../../db/tables.ts'

const copyForm = /^copy \(/
/** `PGCOPY\n\xff\r\n\0`, flags, and the length of nothing more. */
const headerBytes = 19
const nullLength = -1
const endOfRows = -1

/** The columns of a row as PostgreSQL's binary format has them; null for NULL. */
export type BinaryRow = (Buffer | null)[]

/**
 * A database that can also read in bulk: the driver itself takes values as text, and bitmaps by the hundred megabytes as
 * twice as much hexadecimal text.
 */
export function createBulkDb(pool: pg.Pool): Db {
  const connect = async () => {
    const client = await pool.connect()
    return {
      query: async (text: string, values: readonly unknown[]) =>
        copyForm.test(text) ? await copyRows(client, text) : await client.query(text, [...values]),
      release: () => client.release(),
    } as unknown as PostgresPoolClient
  }
  return new Kysely<Database>({
    dialect: new PostgresDialect({ pool: { connect, end: () => pool.end(), options: pool.options } }),
  })
}

/** The rows of a query, whose values must stand in its text (`sql.lit`): COPY takes no parameters. */
export async function readBinaryRows(db: Db, query: RawBuilder<unknown>): Promise<BinaryRow[]> {
  const { rows } = (await sql`copy (${query}) to stdout (format binary)`.execute(db)) as QueryResult<BinaryRow>
  return rows
}

async function copyRows(client: pg.PoolClient, text: string) {
  const pieces: Buffer[] = []
  const stream: CopyToStreamQuery & { callback?: () => void } = client.query(copyTo(text))
  try {
    for await (const piece of stream) pieces.push(piece as Buffer)
  } finally {
    // The driver's, which the stream does not call: it ends the wait after which the query counts as stuck.
    stream.callback?.()
  }
  return { command: 'COPY', rowCount: 0, rows: parseRows(Buffer.concat(pieces)) }
}

/** See "Binary Format" of COPY in PostgreSQL's manual. */
function parseRows(bytes: Buffer): BinaryRow[] {
  const rows: BinaryRow[] = []
  let at = headerBytes
  const takeColumn = () => {
    const length = bytes.readInt32BE(at)
    at += 4
    if (length === nullLength) return null
    at += length
    return bytes.subarray(at - length, at)
  }
  for (;;) {
    const columns = bytes.readInt16BE(at)
    at += 2
    if (columns === endOfRows) return rows
    const row: BinaryRow = []
    for (let column = 0; column < columns; column += 1) row.push(takeColumn())
    rows.push(row)
  }
}

export function readInt8(value: Buffer | null | undefined): number {
  return Number(value?.readBigInt64BE() ?? 0n)
}

export function readInt4(value: Buffer | null | undefined): number {
  return value?.readInt32BE() ?? 0
}
