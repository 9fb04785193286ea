import type pg from 'pg'
import pino from 'pino'
import { createSegmentBuilder, type ObservationContext } from '../../src/activity/segment.ts'
import { countDevices, countVersions } from '../../src/activity/store/answers.ts'
import { createBulkDb } from '../../src/activity/store/bulk-reads.ts'
import { readApp } from '../../src/activity/store/read-app.ts'
import { createStoreContext, type StoreContext } from '../../src/activity/store/store-context.ts'
import { createDb, createPool, type Db } from '../../src/db/connection.ts'
import { createTestDatabase } from '../support/test-database.ts'
import { clientOf, insertTestApp } from './harness.ts'

export type Sighting = { device: number; timeMs: number; context?: Partial<ObservationContext> }

/** What one process has, without the process around it. */
export type StoreProcess = {
  context: StoreContext
  /** From then on the statement after so many others fails, and with it the connection. */
  failAfter: (statements: number | undefined) => void
  close: () => Promise<void>
}

export type StoreHarness = {
  db: Db
  appId: string
  start: (options?: { cacheBytes?: number; now?: () => number; maxDevices?: number }) => StoreProcess
  /** Commits a segment. */
  accept: (sightings: Sighting[]) => Promise<void>
  close: () => Promise<void>
}

export const baseContext: ObservationContext = { release: '1.0.0+1', platform: 'android', rolledBack: [] }

export async function createStoreHarness(): Promise<StoreHarness> {
  const database = await createTestDatabase()
  const { connectionString } = database
  const pool = createPool(connectionString)
  pool.on('error', () => undefined)
  const db = createDb(pool)
  const appId = await insertTestApp(db)
  const processes: StoreProcess[] = []
  return {
    db,
    appId,
    start: (options = {}) => {
      const started = startProcess(connectionString, options)
      processes.push(started)
      return started
    },
    accept: async (sightings) => {
      const builder = createSegmentBuilder()
      for (const { device, timeMs, context } of sightings) {
        builder.add(builder.addContext({ ...baseContext, ...context }), timeMs, clientOf(device))
      }
      await db.insertInto('activity_segments').values({ app_id: appId, observations: builder.encode() }).execute()
    },
    close: async () => {
      for (const process of processes) await process.close()
      await db.destroy()
      await database.drop()
    },
  }
}

function startProcess(
  connectionString: string,
  options: { cacheBytes?: number; now?: () => number; maxDevices?: number },
): StoreProcess {
  const pool = createPool(connectionString)
  pool.on('error', () => undefined)
  let statementsLeft: number | undefined
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown
    const counted = (...args: unknown[]) => {
      if (statementsLeft !== undefined && statementsLeft <= 0) {
        client.end().catch(() => undefined)
        return Promise.reject(new Error('the connection was cut'))
      }
      if (statementsLeft !== undefined) statementsLeft -= 1
      return query(...args)
    }
    client.query = counted as unknown as pg.Client['query']
  })
  const db = createBulkDb(pool)
  return {
    context: createStoreContext({
      db,
      partitionDb: db,
      replica: undefined,
      maxDevices: options.maxDevices ?? 1_000_000,
      now: options.now ?? Date.now,
      cacheBytes: options.cacheBytes ?? 2 ** 26,
      hourlyRetentionDays: 90,
      dailyRetentionDays: 400,
      log: pino({ level: 'silent' }),
    }),
    failAfter: (statements) => {
      statementsLeft = statements
    },
    close: () => db.destroy(),
  }
}

/** Distinct devices of a span, and how many there are per release. */
export async function ask({ context }: StoreProcess, appId: string, span: { fromMs: number; toMs: number }) {
  return await readApp(context, appId, async (reader) => {
    const [counted] = await countDevices(reader, [span], 'release_version')
    return { ...counted, versions: await countVersions(reader, 0) }
  })
}
