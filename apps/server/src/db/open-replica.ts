import type { Logger } from 'pino'
import { createDb, createPool, type Db, type StatementLimit } from './connection.ts'
import { replicaConnections } from './connection-counts.ts'
import { type DatabaseHealth, watchDatabase } from './database-health.ts'
import { type GuardedPool, guardPool } from './guarded-pool.ts'

export type Replica = { db: Db; health: DatabaseHealth; close: () => Promise<void> }

/** How reads of a replica ended. `behind`: it lacked what is known to be needed. For both that and `failed` the primary is read. */
export type ReplicaReads = { used: number; behind: number; failed: number }

export function createReplicaReads(): ReplicaReads {
  return { used: 0, behind: 0, failed: 0 }
}

/** undefined: there is none. Nothing waits for it: whatever it does not answer is asked of the primary. */
export function openReplica(options: {
  connectionString: string | undefined
  statementLimit: StatementLimit
  log: Pick<Logger, 'info' | 'error'>
  openDb?: (pool: GuardedPool) => Db
}): Replica | undefined {
  const { connectionString, statementLimit, log, openDb = createDb } = options
  if (connectionString === undefined) return undefined
  const health = watchDatabase({ connectionString, log, is: 'replica' })
  const db = openDb(guardPool(() => createPool(connectionString, replicaConnections, statementLimit), health))
  return {
    db,
    health,
    close: async () => {
      await health.stop()
      await db.destroy()
    },
  }
}
