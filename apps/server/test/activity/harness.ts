import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PatchCheckRequest, PatchEvent } from '@godwit/contract'
import pino from 'pino'
import { formatClientKey } from '../../src/activity/client-key.ts'
import { createRecorder, type Recorder } from '../../src/activity/recorder.ts'
import { contextOf, decodeSegment, keyOffsetOf, type ObservationContext, timeOf } from '../../src/activity/segment.ts'
import { createDb, createPool, type Db } from '../../src/db/connection.ts'
import type { AppAnswers } from '../../src/devices/app-answers.ts'
import { createTestDatabase } from '../support/test-database.ts'

export type Observation = { client: string; timeMs: number; context: ObservationContext }

type StartOptions = {
  isActivityRecorded?: boolean
  maxSpoolBytes?: number
  maxBacklogBytes?: number
  clock?: () => Date
  dir?: string
}

/** Recorders on a database of their own, without the service: nobody compacts what they record. */
export type RecorderHarness = {
  db: Db
  connectionString: string
  dir: string
  appId: string
  /** What is found when it is asked what devices of the app are told. */
  apps: Map<string, AppAnswers>
  start: (options?: StartOptions) => Promise<Recorder>
  listObservations: (appId?: string) => Promise<Observation[]>
  countEvents: () => Promise<number>
  close: () => Promise<void>
}

/** An app of an organization, in a database without the service. Returns its id. */
export async function insertTestApp(db: Db): Promise<string> {
  const organization = await db
    .insertInto('organizations')
    .values({ name: 'Team', organization_type: 'team' })
    .returning('id')
    .executeTakeFirstOrThrow()
  const appId = '00000000-0000-4000-8000-00000000000a'
  await db.insertInto('apps').values({ id: appId, organization_id: organization.id, display_name: 'Atlas' }).execute()
  return appId
}

export async function createRecorderHarness(): Promise<RecorderHarness> {
  const database = await createTestDatabase()
  const pool = createPool(database.connectionString)
  pool.on('error', () => undefined)
  const db = createDb(pool)
  const dir = await mkdtemp(join(tmpdir(), 'godwit-spool-'))
  const appId = await insertTestApp(db)
  const apps = new Map<string, AppAnswers>()
  const recorders: Recorder[] = []
  return {
    db,
    connectionString: database.connectionString,
    dir,
    appId,
    apps,
    start: async (options = {}) => {
      const recorder = await createRecorder({
        db,
        deviceIndex: { findApp: (id) => apps.get(id) },
        config: {
          isActivityRecorded: options.isActivityRecorded ?? true,
          spoolDir: options.dir ?? dir,
          maxSpoolBytes: options.maxSpoolBytes ?? 2 ** 30,
        },
        clock: options.clock ?? (() => new Date()),
        log: pino({ level: 'silent' }),
        ...(options.maxBacklogBytes === undefined ? {} : { maxBacklogBytes: options.maxBacklogBytes }),
      })
      recorders.push(recorder)
      return recorder
    },
    listObservations: async (id = appId) => {
      const rows = await db
        .selectFrom('activity_segments')
        .select('observations')
        .where('app_id', '=', id)
        .orderBy('id')
        .execute()
      return rows.flatMap(({ observations }) => readObservations(observations))
    },
    countEvents: async () => (await db.selectFrom('device_events').select('id').execute()).length,
    close: async () => {
      for (const recorder of recorders) await recorder.stop()
      await db.destroy()
      await database.drop()
      for (const name of [dir, `${dir}-copy`]) await rm(name, { recursive: true, force: true })
    },
  }
}

export function readObservations(bytes: Buffer): Observation[] {
  const segment = decodeSegment(bytes)
  return Array.from({ length: segment.count }, (_, index) => ({
    client: formatClientKey(segment.words, keyOffsetOf(index)),
    timeMs: timeOf(segment, index),
    context: segment.contexts[contextOf(segment, index)] as ObservationContext,
  }))
}

/** The client_id of the device of this number. */
export function clientOf(device: number): string {
  return `00000000-0000-4000-8000-${device.toString(16).padStart(12, '0')}`
}

export function deviceOf(client: string): number {
  return Number.parseInt(client.slice(-12), 16)
}

export function checkOf(appId: string, device: number, overrides: Partial<PatchCheckRequest> = {}): PatchCheckRequest {
  return {
    app_id: appId,
    channel: 'stable',
    release_version: '1.0.0+1',
    platform: 'android',
    arch: 'aarch64',
    client_id: clientOf(device),
    ...overrides,
  }
}

/** The same for all events of a test, so that one that is sent again is the same. */
const startedSeconds = Math.floor(Date.now() / 1000)

export function eventOf(appId: string, device: number, overrides: Partial<PatchEvent> = {}): PatchEvent {
  return {
    app_id: appId,
    arch: 'aarch64',
    client_id: clientOf(device),
    type: '__patch_install__',
    patch_number: 3,
    platform: 'android',
    release_version: '1.0.0+1',
    timestamp: startedSeconds,
    ...overrides,
  }
}
