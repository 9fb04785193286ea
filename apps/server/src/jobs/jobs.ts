import { CompiledQuery } from 'kysely'
import type pg from 'pg'
import { PgBoss } from 'pg-boss'
import type { Logger } from 'pino'
import type { Db } from '../db/connection.ts'

type SqlRunner = { executeSql: (text: string, values?: unknown[]) => Promise<{ rows: unknown[] }> }

const sweepQueue = 'sweep-blobs'
const eventRemovalQueue = 'remove-device-events'
/** Uploads that were never finished expire without anybody asking: look for them this often. */
const sweepSchedule = '17 * * * *'

export type JobHandlers = {
  sweepBlobs: () => Promise<unknown>
  removeDeviceEvents: (input: { appId: string }) => Promise<void>
}

/** Work that follows a commit, done once among all instances, and again when it failed. */
export type Jobs = {
  /** Has the bytes that no artifact refers to removed, soon. Part of the transaction that dropped the artifact. */
  requestBlobSweep: (db: Db) => Promise<void>
  /** Has the device events of an app removed. Part of the transaction that deletes the app. */
  requestEventRemoval: (db: Db, input: { appId: string }) => Promise<void>
  /** Starts doing what was requested. */
  work: (handlers: JobHandlers) => Promise<void>
  /** Lets a running job finish. */
  stop: () => Promise<void>
}

/** Jobs in the schema `pgboss` of the database. */
export async function createJobs(options: { pool: pg.Pool; log: Logger }): Promise<Jobs> {
  const boss = new PgBoss({
    db: { executeSql: async (text: string, values?: unknown[]) => await options.pool.query(text, values) },
  })
  boss.on('error', (error) => options.log.error({ err: error }, 'job queue'))
  await boss.start()
  const retry = { retryLimit: 5, retryBackoff: true, retryDelay: 10 }
  await boss.createQueue(sweepQueue, retry)
  await boss.createQueue(eventRemovalQueue, retry)
  return {
    async requestBlobSweep(db) {
      await boss.send(sweepQueue, {}, { db: runOn(db) })
    },
    async requestEventRemoval(db, { appId }) {
      await boss.send(eventRemovalQueue, { appId }, { db: runOn(db) })
    },
    async work({ sweepBlobs, removeDeviceEvents }) {
      await boss.work(sweepQueue, async () => await sweepBlobs())
      await boss.work<{ appId: string }>(eventRemovalQueue, async (requests) => {
        for (const { data } of requests) await removeDeviceEvents(data)
      })
      await boss.schedule(sweepQueue, sweepSchedule)
    },
    async stop() {
      await boss.stop({ graceful: true, timeout: 30_000 })
    },
  }
}

/** The same statements inside a transaction of ours. */
function runOn(db: Db): SqlRunner {
  return {
    executeSql: async (text, values = []) => ({ rows: (await db.executeQuery(CompiledQuery.raw(text, values))).rows }),
  }
}
