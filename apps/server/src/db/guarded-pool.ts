import type pg from 'pg'
import { cutConnection, type DatabaseHealth } from './database-health.ts'
import { DatabaseUnavailableError } from './errors.ts'

/** Whoever comes when so many wait is refused: behind slow statements a queue would only grow. */
const maxWaiting = 200

/** What Kysely and other libraries need of a pool. */
export type GuardedPool = {
  connect: () => Promise<pg.PoolClient>
  query: (query: pg.QueryConfig) => Promise<pg.QueryResult>
  end: () => Promise<void>
} & Pick<pg.Pool, 'options' | 'totalCount' | 'idleCount' | 'waitingCount'>

/**
 * A pool that refuses at once while the database is away, where `pg` would let everybody wait for a timeout. When it is
 * lost, whoever waits is let go, and every connection is cut: what runs on one may never be answered.
 */
export function guardPool(create: () => pg.Pool, health: DatabaseHealth): GuardedPool {
  const waiting = new Set<(error: Error) => void>()
  const clients = new Set<pg.PoolClient>()
  const open = () => {
    const pool = create()
    pool.on('connect', (client) => {
      clients.add(client)
      client.on('error', health.suspect)
    })
    pool.on('remove', (client) => clients.delete(client))
    // Of a connection that nobody uses. It is replaced when one is needed.
    pool.on('error', health.suspect)
    return pool
  }
  let pool = open()

  health.onLost((fault) => {
    const lost = pool
    pool = open()
    for (const refuse of waiting) refuse(fault)
    waiting.clear()
    const cut = [...clients]
    clients.clear()
    for (const client of cut) cutConnection(client)
    void lost.end()
  })
  const takeClient = () =>
    new Promise<pg.PoolClient>((resolve, reject) => {
      waiting.add(reject)
      pool.connect().then(
        (client) => (waiting.delete(reject) ? resolve(client) : client.release(true)),
        (error: Error) => {
          health.suspect()
          waiting.delete(reject)
          reject(error)
        },
      )
    })
  const connect = async () => {
    if (health.fault() !== undefined) await health.asked
    const fault = health.fault()
    if (fault !== undefined) throw fault
    if (pool.waitingCount >= maxWaiting) throw new DatabaseUnavailableError('too many wait for a connection')
    return await takeClient()
  }
  return {
    connect,
    query: async (query) => {
      const client = await connect()
      try {
        return await client.query(query)
      } finally {
        client.release()
      }
    },
    end: () => pool.end(),
    options: pool.options,
    get totalCount() {
      return pool.totalCount
    },
    get idleCount() {
      return pool.idleCount
    },
    get waitingCount() {
      return pool.waitingCount
    },
  }
}
