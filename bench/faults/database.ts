import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../apps/server/src/embedded-postgres/index.ts'
import { atTheEnd } from '../closing.ts'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts'

/** A PostgreSQL of the user's own, behind a network that can fail. */
export type FaultyDatabase = {
  /** Through the network. */
  url: string
  proxy: TcpProxy
  /** The postmaster ends, as for an upgrade. */
  stop: () => Promise<void>
  /** Reachable again, whatever happened to it. */
  heal: () => Promise<void>
  /** Around the network: for the checker. */
  query: <Row extends pg.QueryResultRow>(text: string) => Promise<Row[]>
}

const log = pino({ level: 'silent' })

export async function openFaultyDatabase(folder: string): Promise<FaultyDatabase> {
  const start = () => startEmbeddedPostgres({ dataDir: join(folder, 'database'), log })
  let postgres: EmbeddedPostgres | undefined = await start()
  const portOf = (connectionString: string) => Number(new URL(connectionString).port)
  const proxy = await startTcpProxy(portOf(postgres.connectionString))
  const url = new URL(postgres.connectionString)
  url.port = String(proxy.port)
  atTheEnd(async () => {
    await proxy.close()
    await postgres?.stop()
  })
  return {
    url: url.href,
    proxy,
    stop: async () => {
      await proxy.refuse()
      await postgres?.stop()
      postgres = undefined
    },
    heal: async () => {
      postgres ??= await start()
      proxy.aim(portOf(postgres.connectionString))
      await proxy.heal()
    },
    query: (text) => queryOnce(postgres?.connectionString ?? url.href, text),
  }
}

export async function queryOnce<Row extends pg.QueryResultRow>(connectionString: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => undefined)
  await client.connect()
  try {
    const { rows } = await client.query<Row>(text)
    return rows
  } finally {
    await client.end()
  }
}
