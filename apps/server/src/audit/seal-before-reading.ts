import { setTimeout as wait } from 'node:timers/promises'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { hasOutboxEvents } from './queries.ts'
import { sealEvents } from './seal-events.ts'

const underway = new WeakMap<Db, Promise<void>>()

/** Another instance that seals is done in milliseconds, unless it has died meanwhile. */
const tries = 5
const pauseMs = 50

type SealDeps = Pick<Deps, 'db' | 'clock' | 'log'>

/**
 * Seals what was committed before, so that a reader sees it. Many readers at once are one sealing. Reading goes on with
 * what is sealed when another instance holds on to the lock, or when sealing fails.
 */
export async function sealBeforeReading(deps: SealDeps): Promise<void> {
  // One that began earlier may have missed what was committed since.
  await underway.get(deps.db)
  if (!(await hasOutboxEvents(deps.db))) return
  const sealing = underway.get(deps.db) ?? seal(deps).finally(() => underway.delete(deps.db))
  underway.set(deps.db, sealing)
  await sealing
}

async function seal(deps: SealDeps): Promise<void> {
  try {
    for (let attempt = 0; attempt < tries; attempt += 1) {
      if ((await sealEvents(deps.db, { now: deps.clock(), waits: false })) !== undefined) return
      await wait(pauseMs)
    }
  } catch (error) {
    deps.log.warn({ err: error }, 'audit events wait to be sealed')
  }
}
