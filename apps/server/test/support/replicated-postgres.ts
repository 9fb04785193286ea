import { appendFile, cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import pino from 'pino'
import { startEmbeddedPostgres } from '../../src/embedded-postgres/index.ts'

export type ReplicatedPostgres = {
  primaryUrl: string
  replicaUrl: string
  /** SIGKILL. What supervises the replica starts it again. */
  killReplica: () => Promise<void>
  stop: () => Promise<void>
}

/** A primary and a standby that streams from it: two real servers. */
export async function startReplicatedPostgres(): Promise<ReplicatedPostgres> {
  const dir = await mkdtemp(join(tmpdir(), 'godwit-replica-'))
  const options = { log: pino({ level: 'silent' }), durable: false }
  const primaryOptions = { ...options, dataDir: join(dir, 'primary') }
  const replicaOptions = { ...options, dataDir: join(dir, 'replica') }
  await (await startEmbeddedPostgres(primaryOptions)).stop()
  await cp(primaryOptions.dataDir, replicaOptions.dataDir, {
    recursive: true,
    filter: (path) => !path.endsWith('/lock'),
  })
  const primary = await startEmbeddedPostgres(primaryOptions)
  const { hostname, port, username, password } = new URL(primary.connectionString)
  const cluster = join(replicaOptions.dataDir, 'cluster')
  await appendFile(
    join(cluster, 'postgresql.auto.conf'),
    `primary_conninfo = 'host=${hostname} port=${port} user=${username} password=${password}'\n`,
  )
  await writeFile(join(cluster, 'standby.signal'), '')
  const replica = await startEmbeddedPostgres(replicaOptions)
  return {
    primaryUrl: primary.connectionString,
    replicaUrl: replica.connectionString,
    killReplica: async () => {
      const [pid] = (await readFile(join(cluster, 'postmaster.pid'), 'utf8')).split('\n')
      process.kill(Number(pid), 'SIGKILL')
    },
    stop: async () => {
      await replica.stop()
      await primary.stop()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** The first value of the first row. */
export async function queryValue(connectionString: string, text: string): Promise<unknown> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => undefined)
  await client.connect()
  try {
    const { rows } = await client.query({ text, rowMode: 'array' })
    return rows[0]?.[0]
  } finally {
    await client.end()
  }
}
