import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { connectOrStartEmbeddedPostgres } from '../../apps/server/src/embedded-postgres/connect-or-start.ts'
import { adminKey, startGodwit } from '../check/servers.ts'

/** The service as a user starts it, with the database that it brings. */
export type Godwit = {
  baseUrl: () => string
  connectionString: () => string
  serverPid: () => number
  postgresPid: () => Promise<number>
  /** Ends service and database, and starts both with empty caches. */
  restart: (environment?: Record<string, string>) => Promise<void>
  get: <Answer>(path: string) => Promise<Answer>
  close: () => Promise<void>
}

const log = pino({ level: 'warn' })
const settleMs = 2000

export async function openGodwit(dataDir: string): Promise<Godwit> {
  const database = join(dataDir, 'postgres')
  const open = async (environment: Record<string, string> = {}) => {
    const server = await startGodwit(dataDir, environment)
    const { connectionString } = await connectOrStartEmbeddedPostgres({ dataDir: database, log })
    return { server, connectionString }
  }
  let opened = await open()
  const baseUrl = () => `http://127.0.0.1:${opened.server.port}`
  const get = async <Answer>(path: string) => {
    const response = await fetch(`${baseUrl()}${path}`, { headers: { authorization: `Bearer ${adminKey}` } })
    const text = await response.text()
    if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${text.slice(0, 500)}`)
    return JSON.parse(text) as Answer
  }
  return {
    baseUrl,
    connectionString: () => opened.connectionString,
    serverPid: () => opened.server.pid,
    postgresPid: async () => {
      const file = join(database, 'cluster', 'postmaster.pid')
      return Number((await readFile(file, 'utf8')).split('\n')[0])
    },
    restart: async (environment) => {
      await opened.server.stop()
      await dropFileCache()
      opened = await open(environment)
      // What is measured is a question, not how the service reads its own code from disk.
      await sleep(settleMs)
      await get('/api/v1/organizations')
    },
    get,
    close: () => opened.server.stop(),
  }
}

/** Whether the system let us: only root may empty its cache of files. */
export async function dropFileCache(): Promise<boolean> {
  return await writeFile('/proc/sys/vm/drop_caches', '3').then(
    () => true,
    () => false,
  )
}
