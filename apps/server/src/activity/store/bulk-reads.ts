import { Kysely, PostgresDialect, type PostgresPoolClient, type QueryResult, type RawBuilder, sql } from 'kysely'
import type pg from 'pg'
import { type CopyToStreamQuery, to as copyTo } from 'pg-copy-streams'
import type { Db } from '../../db/connection.ts'
import type { GuardedPool } from '../../db/guarded-pool.ts'
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
export function createBulkDb(pool: Pick<pg.Pool, 'connect' | 'end' | 'options'> | GuardedPool): Db {
  const connect = async () => {
    const client = await pool.connect()
    return {
      query: async (text: string, values: readonly unknown[]) =>
        copyForm.test(text) ? await copyRows(client, text) : await client.query(text, [...values]),
      release: (isLost?: boolean) => client.release(isLost),
    } as unknown as PostgresPoolClient
  }
  return new Kysely<Database>({
    dialect: new PostgresDialect({ pool: { connect, end: () => pool.end(), options: pool.options } }),
  })
}

/**
 * The rows of a query, whose values must stand in its text (`sql.lit`): COPY takes no parameters. They are valid until the
 * connection reads others: whoever wants to keep one copies it.
 */
export async function readBinaryRows(db: Db, query: RawBuilder<unknown>): Promise<BinaryRow[]> {
  const { rows } = (await sql`copy (${query}) to stdout (format binary)`.execute(db)) as QueryResult<BinaryRow>
  return rows
}

/** The answer to one statement of a connection at a time. */
type Answer = { bytes: Buffer; usedBytes: number }

const initialBytes = 1024 ** 2
/** Memory by the ten megabytes that comes and goes costs more than what is done with it. */
const answers = new WeakMap<pg.PoolClient, Answer>()

async function copyRows(client: pg.PoolClient, text: string) {
  const answer = answers.get(client) ?? { bytes: Buffer.allocUnsafeSlow(initialBytes), usedBytes: 0 }
  answers.set(client, answer)
  answer.usedBytes = 0
  const stream: CopyToStreamQuery & { callback?: () => void } = client.query(copyTo(text))
  try {
    for await (const piece of stream) append(answer, piece as Buffer)
  } finally {
    // The driver's, which the stream does not call: it ends the wait after which the query counts as stuck.
    stream.callback?.()
  }
  return { command: 'COPY', rowCount: 0, rows: parseRows(answer.bytes.subarray(0, answer.usedBytes)) }
}

function append(answer: Answer, piece: Buffer): void {
  const neededBytes = answer.usedBytes + piece.length
  if (neededBytes > answer.bytes.length) {
    const larger = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(neededBytes)))
    answer.bytes.copy(larger, 0, 0, answer.usedBytes)
    answer.bytes = larger
  }
  answer.usedBytes += piece.copy(answer.bytes, answer.usedBytes)
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
