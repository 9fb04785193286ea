import { sql } from 'kysely'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'

/** The channel on which instances tell each other that what devices of an app are offered has changed. */
export const appChangedChannel = 'app_changed'

/**
 * Runs a change of what devices of an app may be offered. The app's row is locked first, so that such changes of one
 * app happen one after the other; the new version and the notification are part of the same transaction, and the index of
 * this instance knows before the caller is answered.
 */
export async function changeApp<Result>(
  deps: Deps,
  appId: string,
  change: (db: Db) => Promise<Result>,
): Promise<Result> {
  const { result, version } = await deps.db.transaction().execute(async (trx) => {
    const version = await incrementDeviceVersion(trx, { appId })
    const result = await change(trx)
    return { result, version }
  })
  if (version !== undefined) deps.deviceIndex.markChanged(appId, version)
  return result
}

/** undefined when there is no such app. */
async function incrementDeviceVersion(db: Db, input: { appId: string }): Promise<number | undefined> {
  const row = await db
    .updateTable('apps')
    .set((eb) => ({ device_version: eb('device_version', '+', 1) }))
    .where('id', '=', input.appId)
    .returning('device_version')
    .executeTakeFirst()
  if (row === undefined) return undefined
  await notifyAppChanged(db, { appId: input.appId, version: row.device_version })
  return row.device_version
}

/** Version 0 says that the app is gone. Delivered by PostgreSQL when, and only when, the transaction commits. */
export async function notifyAppChanged(db: Db, input: { appId: string; version: number }): Promise<void> {
  await sql`select pg_notify(${appChangedChannel}, ${`${input.version}:${input.appId}`})`.execute(db)
}
