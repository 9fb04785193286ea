import pg from 'pg'

const timeoutMs = 5000

/** One connection for a look; every statement ends soon. */
export async function withClient<T>(connectionString: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    application_name: 'godwit doctor',
  })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

/** The only row of a query. */
export async function readRow<Row extends pg.QueryResultRow>(client: pg.Client, text: string): Promise<Row> {
  const { rows } = await client.query<Row>(text)
  if (rows[0] === undefined) throw new Error('PostgreSQL answered with no row')
  return rows[0]
}
