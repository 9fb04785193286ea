import { randomUUID } from 'node:crypto'
import { setImmediate as yieldOnce } from 'node:timers/promises'
import type { PatchCheckRequest } from '@godwit/contract'
import { pino } from 'pino'
import { createRecorder } from '../../apps/server/src/activity/recorder.ts'
import { createActivityStore } from '../../apps/server/src/activity/store/create-activity-store.ts'
import { readConfig } from '../../apps/server/src/config.ts'
import { createDb, createPool } from '../../apps/server/src/db/connection.ts'
import { migrateToLatest } from '../../apps/server/src/db/migrate.ts'

const devices = 100_000
/** As many checks as a server answers between two looks at its timers. */
const turn = 500
/** Beyond this, whoever sends would have to wait, or observations would be dropped. */
const fullBytes = 32 * 1024 ** 2
const appId = 'bench'

export type Accepted = {
  observations: number
  seconds: number
  nsPerCheck: number
  mostBacklogBytes: number
  /** What it takes afterwards to count them. */
  compactSeconds: number
}

/** Records as fast as the database takes it, without HTTP, and checks that all of it is there. */
export async function measureAccepting(options: {
  connectionString: string
  spoolDir: string
  durationMs: number
}): Promise<Accepted> {
  const pool = createPool(options.connectionString)
  pool.on('error', () => undefined)
  const db = createDb(pool)
  await migrateToLatest(db)
  const { id: organization_id } = await db
    .insertInto('organizations')
    .values({ name: 'Bench', organization_type: 'team' })
    .returning('id')
    .executeTakeFirstOrThrow()
  await db.insertInto('apps').values({ id: appId, organization_id, display_name: 'Bench' }).execute()
  const recorder = await createRecorder({
    db,
    deviceIndex: { findApp: () => undefined },
    config: { isActivityRecorded: true, spoolDir: options.spoolDir, maxSpoolBytes: 2 ** 32 },
    clock: () => new Date(),
    log: pino({ level: 'warn' }),
  })
  const checks = Array.from({ length: devices }, (_, device) => makeCheck(device))
  const rolledBack = Object.freeze([1])

  const startedAt = performance.now()
  let observations = 0
  let recordingMs = 0
  let mostBacklogBytes = 0
  while (performance.now() - startedAt < options.durationMs) {
    const turnStartedAt = performance.now()
    for (let count = 0; count < turn; count += 1) {
      recorder.recordCheck(checks[(observations + count) % devices] as PatchCheckRequest, rolledBack)
    }
    recordingMs += performance.now() - turnStartedAt
    observations += turn
    const { backlogBytes } = recorder.measure()
    mostBacklogBytes = Math.max(mostBacklogBytes, backlogBytes)
    if (backlogBytes > fullBytes) await recorder.flush()
    else await yieldOnce()
  }
  await recorder.flush()
  const seconds = (performance.now() - startedAt) / 1000
  const { dropped } = recorder.measure()
  await recorder.stop()
  const segments = await db.selectFrom('activity_segments').select('observations').execute()
  await db.destroy()
  const compactSeconds = await compact(options.connectionString)
  const stored = segments.reduce((sum, row) => sum + countRecords(row.observations), 0)
  if (stored !== observations) throw new Error(`${stored} of ${observations} are stored, ${JSON.stringify(dropped)}`)
  return { observations, seconds, nsPerCheck: (recordingMs / observations) * 1e6, mostBacklogBytes, compactSeconds }
}

async function compact(connectionString: string): Promise<number> {
  const store = createActivityStore({
    connectionString,
    config: { ...readConfig({}), metricsCacheBytes: 2 ** 28 },
    clock: () => new Date(),
    log: pino({ level: 'warn' }),
  })
  const startedAt = performance.now()
  // It gives up waiting after ten seconds, and goes on.
  while (
    !(await store.compact({ appId }).then(
      () => true,
      () => false,
    ))
  );
  const seconds = (performance.now() - startedAt) / 1000
  await store.stop()
  return seconds
}

/** As devices send them: JSON.parse makes strings of each one's own. */
function makeCheck(device: number): PatchCheckRequest {
  return JSON.parse(
    JSON.stringify({
      app_id: appId,
      channel: 'stable',
      release_version: `1.${device % 3}.0+1`,
      platform: device % 2 === 0 ? 'android' : 'ios',
      arch: 'aarch64',
      client_id: randomUUID(),
      ...(device % 4 === 0 ? {} : { current_patch_number: device % 4 }),
    }),
  )
}

function countRecords(bytes: Buffer): number {
  return (bytes.length - 8 - bytes.readUInt32LE(4)) / 24
}
