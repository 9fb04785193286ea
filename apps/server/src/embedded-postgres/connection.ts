import { realpathSync } from 'node:fs'
import pg from 'pg'
import { NAME } from './cluster.ts'

const HOST = '127.0.0.1'
const CONNECT_TIMEOUT_MS = 2_000
const QUERY_TIMEOUT_MS = 30_000
const INVALID_CATALOG_NAME = '3D000'
const DUPLICATE_DATABASE = '42P04'

export function buildConnectionString(port: number, password: string): string {
  return `postgres://${NAME}:${password}@${HOST}:${port}/${NAME}`
}

/** The folder and the settings that the server on this port runs with. Makes its database when a crash came before that. */
export async function identifyServer(
  port: number,
  password: string,
): Promise<{ clusterDir: string; launchId: string }> {
  try {
    return await withClient(port, password, NAME, readIdentity)
  } catch (error) {
    if ((error as pg.DatabaseError).code !== INVALID_CATALOG_NAME) throw error
    await withClient(port, password, 'postgres', createDatabase)
    return await withClient(port, password, NAME, readIdentity)
  }
}

async function readIdentity(client: pg.Client) {
  const { rows } = await client.query<{ cluster_dir: string; launch_id: string | null }>(
    `select current_setting('data_directory') as cluster_dir, current_setting('godwit.launch_id', true) as launch_id`,
  )
  return { clusterDir: realpathSync(rows[0]?.cluster_dir ?? ''), launchId: rows[0]?.launch_id ?? '' }
}

async function createDatabase(client: pg.Client): Promise<void> {
  try {
    await client.query(`create database ${NAME}`)
  } catch (error) {
    if ((error as pg.DatabaseError).code !== DUPLICATE_DATABASE) throw error
  }
}

async function withClient<T>(
  port: number,
  password: string,
  database: string,
  use: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    host: HOST,
    port,
    user: NAME,
    password,
    database,
    // Set here so that the PG… variables of the environment have no say.
    ssl: false,
    options: '',
    application_name: 'godwit-supervisor',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
  })
  // A server that dies between two replies would otherwise take this process with it.
  client.on('error', () => {})
  try {
    await client.connect()
    return await use(client)
  } finally {
    await client.end().catch(() => {})
  }
}
