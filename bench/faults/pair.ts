import { join } from 'node:path'
import { createClient } from '@godwit/sdk'
import { adminKey, type ServerProcess } from '../../apps/server/test/support/server-process.ts'
import { atTheEnd } from '../closing.ts'
import { type FaultyDatabase, openFaultyDatabase } from './database.ts'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts'
import { makeFolder, openServer } from './world.ts'

/** Two equal instances on one PostgreSQL and one folder of blobs. Each has its own way to the database, which can fail. */
export type Pair = { database: FaultyDatabase; servers: [ServerProcess, ServerProcess]; ways: [TcpProxy, TcpProxy] }

export async function openPair(environment: Record<string, string> = {}): Promise<Pair> {
  const folder = await makeFolder()
  const database = await openFaultyDatabase(folder)
  const open = async () => {
    const way = await startTcpProxy(Number(new URL(database.url).port))
    atTheEnd(way.close)
    const url = new URL(database.url)
    url.port = String(way.port)
    const blobs = `file:${join(folder, 'blobs')}`
    const server = await openServer({ DATABASE_URL: url.href, GODWIT_BLOBS: blobs, ...environment })
    return { server, way }
  }
  const [first, second] = [await open(), await open()]
  return { database, servers: [first.server, second.server], ways: [first.way, second.way] }
}

export function clientOf({ baseUrl }: { baseUrl: string }) {
  return createClient({ baseUrl, token: adminKey })
}
