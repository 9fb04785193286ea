import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import { createDb, createPool, type Db } from './connection.ts'
import { type DatabaseHealth, watchDatabase } from './database-health.ts'
import { guardPool } from './guarded-pool.ts'

const maxConnections = 4

export type Replica = { db: Db; health: DatabaseHealth; close: () => Promise<void> }

/** undefined: there is none. Nothing waits for it: whatever it does not answer is asked of the primary. */
export function openReplica({ config, log }: { config: Config; log: Logger }): Replica | undefined {
  const { databaseReplicaUrl: connectionString, databaseDirectUrl, statementTimeoutMs } = config
  if (connectionString === undefined) return undefined
  const health = watchDatabase({ connectionString, log, is: 'replica' })
  // Where there is a pooler before the primary there may be one before the replica.
  const timeoutMs = databaseDirectUrl === undefined ? statementTimeoutMs : null
  const db = createDb(guardPool(() => createPool(connectionString, maxConnections, timeoutMs), health))
  return {
    db,
    health,
    close: async () => {
      await health.stop()
      await db.destroy()
    },
  }
}
