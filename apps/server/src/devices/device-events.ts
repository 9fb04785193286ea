import type { PatchEvent } from '@godwit/contract'
import type { Logger } from 'pino'
import type { Db } from '../db/connection.ts'
import { isDatabaseUnavailable } from '../db/errors.ts'
import { AppError } from '../errors.ts'
import { insertDeviceEvents } from './queries.ts'

/** Events that arrive within this time of the first one share its insert. */
const gatherMs = 2
const maxGroup = 1000
/** Events that may wait for their insert: 10 inserts, 5 MB as devices send them, 100 MB at the longest allowed. */
const maxWaiting = 10_000
/** An insert that takes longer is a database in trouble: whoever waits behind it is told so instead. */
const patienceMs = 2000

/** Stores what devices report, many devices to an insert, one insert at a time. */
export type DeviceEvents = {
  /** Resolves when the event is stored durably. */
  store: (event: PatchEvent) => Promise<void>
  /** Stores what waits, and takes nothing more. */
  stop: () => Promise<void>
}

type Waiting = { event: PatchEvent; resolve: () => void; reject: (error: unknown) => void }

export function createDeviceEvents(options: { db: Db; log: Logger }): DeviceEvents {
  const { db, log } = options
  const queue: Waiting[] = []
  let writing: Promise<void> | undefined
  let isStuck = false
  let isStopped = false

  const unavailable = () => new AppError('unavailable', undefined, { retryAfterSeconds: 5 })
  const refuse = (waiting: Waiting[], error: unknown) => {
    for (const { reject } of waiting) reject(error)
  }

  const insert = async (group: Waiting[]) => {
    const giveUp = setTimeout(() => {
      isStuck = true
      refuse([...group, ...queue.splice(0)], unavailable())
    }, patienceMs)
    try {
      const events = group.map(({ event }) => event)
      await insertDeviceEvents(db, events)
      for (const { resolve } of group) resolve()
    } catch (error) {
      log.error({ err: error, events: group.length }, 'cannot store what devices report')
      refuse(group, isDatabaseUnavailable(error) ? unavailable() : error)
    } finally {
      clearTimeout(giveUp)
      isStuck = false
    }
  }
  const writeAll = async () => {
    await new Promise((resolve) => setTimeout(resolve, gatherMs))
    while (queue.length > 0) await insert(queue.splice(0, maxGroup))
    writing = undefined
  }
  return {
    store: (event) =>
      new Promise((resolve, reject) => {
        if (isStopped || isStuck || queue.length >= maxWaiting) return reject(unavailable())
        queue.push({ event, resolve, reject })
        writing ??= writeAll()
      }),
    stop: async () => {
      isStopped = true
      await writing
    },
  }
}
