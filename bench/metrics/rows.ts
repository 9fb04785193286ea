import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { startEmbeddedPostgres } from '../../apps/server/src/embedded-postgres/index.ts'
import type { Cell } from './questions.ts'

/** A database of rows that answers the same questions. */
export type RowStore = {
  name: string
  select: (sql: string) => Promise<Cell[][]>
  /** Nothing of it is in its memory any more. */
  restart: () => Promise<void>
  close: () => Promise<void>
}

const columns = 'device int, platform text, release_version text, patch_number int, time timestamp'

/** Rows as one would have them in PostgreSQL, with memory as one would give it on this machine. */
export async function loadPostgresRows(folder: string, file: string): Promise<RowStore> {
  const dataDir = join(folder, 'rows')
  const open = async () => {
    const postgres = await startEmbeddedPostgres({ dataDir, log: pino({ level: 'warn' }), durable: false })
    const client = new pg.Client({ connectionString: postgres.connectionString })
    client.on('error', () => undefined)
    await client.connect()
    return { postgres, client }
  }
  let opened = await open()
  const close = async () => {
    await opened.client.end()
    await opened.postgres.stop()
  }
  const restart = async () => {
    await close()
    opened = await open()
  }
  for (const [name, value] of Object.entries(settings))
    await opened.client.query(`alter system set ${name} = '${value}'`)
  await restart()
  // PostgreSQL reads it as a user of its own.
  for (const path of [folder, file]) await chmod(path, 0o755)
  await opened.client.query(`create unlogged table observations (${columns})`)
  await opened.client.query(`copy observations from '${file}' (format csv)`)
  for (const index of indexes) await opened.client.query(index)
  await opened.client.query('vacuum analyze observations')
  return {
    name: 'PostgreSQL rows',
    select: async (sql) => (await opened.client.query<Cell[]>({ text: sql, rowMode: 'array' })).rows,
    restart,
    close,
  }
}

const settings = {
  shared_buffers: '2GB',
  effective_cache_size: '8GB',
  work_mem: '256MB',
  maintenance_work_mem: '1GB',
  max_wal_size: '4GB',
}

const indexes = [
  'create index on observations (time)',
  'create index on observations (release_version, time) include (device, patch_number)',
  'create index on observations (device, time desc) include (release_version)',
]
