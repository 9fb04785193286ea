import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../../db/connection.ts'
import { TooLateError, within } from '../../db/database-health.ts'
import { AppError } from '../../errors.ts'
import { type AppRow, findApp, findAppOnStandby } from './queries.ts'
import type { StoreContext } from './store-context.ts'

/** From then on the primary is asked: mostly what was just counted arrives within milliseconds. */
const patienceMs = 300
const pauseMs = 20

/** One moment of a database. */
export function openSnapshot(db: Db) {
  return db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
}

/**
 * Reads in a snapshot of the replica that has all that the primary has counted of the app until now. undefined: the
 * primary is to be asked, since there is no replica, or it is behind, or has failed at whatever point.
 */
export async function readOnReplica<Result>(
  context: StoreContext,
  appId: string,
  read: (db: Db, row: AppRow) => Promise<Result>,
): Promise<{ result: Result } | undefined> {
  const { replica, replicaReads } = context
  if (replica === undefined) return undefined
  const needed = await findApp(context.db, { appId })
  if (needed === undefined) return undefined
  const giveUpAt = performance.now() + patienceMs
  let isBehind = false
  try {
    for (let leftMs = patienceMs; leftMs > 0; leftMs = giveUpAt - performance.now()) {
      const answer = await readOnceNewEnough(replica, needed, leftMs, read)
      if (answer !== undefined) {
        replicaReads.used += 1
        return answer
      }
      isBehind = true
      await sleep(pauseMs)
    }
    replicaReads.behind += 1
  } catch (error) {
    // Of what was asked. Everything else may be well on the primary.
    if (error instanceof AppError) throw error
    replicaReads[isBehind && error instanceof TooLateError ? 'behind' : 'failed'] += 1
  }
  return undefined
}

/** `openMs`: the snapshot must be there by then. What is read in it takes as long as it does. */
async function readOnceNewEnough<Result>(
  replica: Db,
  needed: AppRow,
  openMs: number,
  read: (db: Db, row: AppRow) => Promise<Result>,
): Promise<{ result: Result } | undefined> {
  const opened = Promise.withResolvers<void>()
  let isGivenUp = false
  const reading = openSnapshot(replica).execute(async (db) => {
    const row = await findAppOnStandby(db, needed)
    // One that comes too late must not touch what the primary is being read into.
    if (isGivenUp || row === undefined) return undefined
    opened.resolve()
    return { result: await read(db, row) }
  })
  try {
    await within(openMs, Promise.race([opened.promise, reading]))
  } catch (error) {
    isGivenUp = true
    throw error
  }
  return await reading
}
