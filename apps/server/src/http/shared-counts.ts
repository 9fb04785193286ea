import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { Logger } from 'pino'
import type { Db } from '../db/connection.ts'

/** The channel on which instances tell each other how much of a limit is used. */
export const countsChannel = 'limit_counts'

const windowMs = 60_000
/** Nothing is told while nobody is near a limit. */
const tellMs = 100
/** Below this share of its limit nobody is told of: so much may each instance let through unseen. */
const quietShare = 0.02
/** PostgreSQL takes payloads of 8000 bytes; an entry has at most 40. */
const entriesPerMessage = 190
const messagesPerRound = 10

export type Count = { key: string; count: number }

/** The counts of one kind of limit, in this minute. */
export type CountGroup = {
  /** Those that have changed since they were told last. */
  takeChanged: () => Count[]
  /** What the other instances have counted together. */
  setOthers: (key: string, count: number) => void
  /** A new minute begins. */
  clear: () => void
}

/** Windows of a minute that begin at the same time everywhere, and what the others count in them. */
export type SharedCounts = {
  /** The same on all instances, and known to nobody else. */
  seed: number
  add: (name: string, group: CountGroup) => void
  hear: (payload: string) => void
  stop: () => Promise<void>
}

export function createSharedCounts(options: { db: Db; seed: number; log: Logger }): SharedCounts {
  const { db, seed, log } = options
  const instance = randomUUID().slice(0, 8)
  const groups = new Map<string, CountGroup>()
  let window = findWindow(Date.now())
  let heard = new Map<string, Map<string, number>>()
  let telling: Promise<void> | undefined
  let isFailing = false

  const rollOver = () => {
    const now = findWindow(Date.now())
    if (now === window) return
    window = now
    heard = new Map()
    for (const { clear } of groups.values()) clear()
  }
  const tell = async () => {
    const entries = [...groups].flatMap(([name, { takeChanged }]) =>
      takeChanged().map(({ key, count }) => `${name}.${key}=${count}`),
    )
    for (let message = 0; message < messagesPerRound && entries.length > 0; message += 1) {
      const payload = `${window}:${instance}:${entries.splice(0, entriesPerMessage).join(',')}`
      await sql`select pg_notify(${countsChannel}, ${payload})`.execute(db)
    }
  }
  const timer = setInterval(() => {
    rollOver()
    telling ??= tell()
      .then(
        () => {
          isFailing = false
        },
        (error: unknown) => {
          // Each instance then holds callers to the limit by itself.
          if (!isFailing) log.warn({ err: error }, 'cannot tell other instances what callers have used of their limits')
          isFailing = true
        },
      )
      .finally(() => {
        telling = undefined
      })
  }, tellMs).unref()
  return {
    seed,
    add: (name, group) => void groups.set(name, group),
    hear: (payload) => {
      rollOver()
      const [ofWindow, from = '', entries = ''] = payload.split(':')
      if (Number(ofWindow) !== window || from === instance) return
      for (const entry of entries.split(',')) {
        const [, name = '', key = '', count] = /^(\w+)\.([\w-]+)=(\d+)$/.exec(entry) ?? []
        const id = `${name}.${key}`
        const byInstance = heard.get(id) ?? new Map<string, number>()
        heard.set(id, byInstance.set(from, Number(count)))
        groups.get(name)?.setOthers(
          key,
          byInstance.values().reduce((sum, each) => sum + each, 0),
        )
      }
    },
    stop: async () => {
      clearInterval(timer)
      await telling
    },
  }
}

function findWindow(nowMs: number): number {
  return Math.floor(nowMs / windowMs)
}

export function secondsToNextWindow(nowMs: number): number {
  return Math.max(1, Math.ceil((windowMs - (nowMs % windowMs)) / 1000))
}

export function isSameWindow(firstMs: number, secondMs: number): boolean {
  return findWindow(firstMs) === findWindow(secondMs)
}

/** From this count on the others are told. */
export function chooseTellFrom(limit: number): number {
  return Math.max(1, Math.ceil(limit * quietShare))
}
