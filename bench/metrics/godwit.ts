import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../apps/server/src/embedded-postgres/index.ts'
import { adminKey, type Server, startGodwit } from '../check/servers.ts'

/** The service as a process, on a PostgreSQL that can be restarted without it. */
export type Godwit = {
  baseUrl: () => string
  connectionString: () => string
  serverPid: () => number
  postgresPid: () => Promise<number>
  /** Ends both, and starts both with empty caches. */
  restart: (environment?: Record<string, string>) => Promise<void>
  get: <Answer>(path: string) => Promise<Answer>
  close: () => Promise<void>
}

const log = pino({ level: 'warn' })
const settleMs = 2000

export async function openGodwit(dataDir: string): Promise<Godwit> {
  const open = async (environment: Record<string, string> = {}) => {
    const postgres = await startEmbeddedPostgres({ dataDir: join(dataDir, 'database'), log })
    const server = await startGodwit(dataDir, { DATABASE_URL: postgres.connectionString, ...environment })
    return { postgres, server }
  }
  const shut = async ({ server, postgres }: { server: Server; postgres: EmbeddedPostgres }) => {
    await server.stop()
    await postgres.stop()
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
    connectionString: () => opened.postgres.connectionString,
    serverPid: () => opened.server.pid,
    postgresPid: async () => {
      const file = join(dataDir, 'database', 'cluster', 'postmaster.pid')
      return Number((await readFile(file, 'utf8')).split('\n')[0])
    },
    restart: async (environment) => {
      await shut(opened)
      await dropFileCache()
      opened = await open(environment)
      // What is measured is a question, not how the service reads its own code from disk.
      await sleep(settleMs)
      await get('/api/v1/organizations')
    },
    get,
    close: () => shut(opened),
  }
}

/** Whether the system let us: only root may empty its cache of files. */
export async function dropFileCache(): Promise<boolean> {
  return await writeFile('/proc/sys/vm/drop_caches', '3').then(
    () => true,
    () => false,
  )
}
