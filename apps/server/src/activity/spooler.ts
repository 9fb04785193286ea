import type { Logger } from 'pino'
import { type BatchLimits, type FrameQueue, unavailable } from './frame-queue.ts'
import { encodeFrame } from './frames.ts'
import type { Spool } from './spool.ts'

/** After an append failed, frames stay in memory for as long before the next attempt. */
const retryMs = 1000
/** What is appended, and made durable, at once. */
const batchLimits: BatchLimits = { sizeBytes: 4 * 1024 ** 2, events: 2000 }

/** Moves frames from memory to the spool for as long as the database is behind. */
export type Spooler = {
  isBehind: () => boolean
  /** Frames go to the spool from now on: those that are queued, and those of every later `move`. */
  fallBehind: () => void
  /** Frames wait in memory from now on. */
  catchUp: () => void
  /** Moves what is queued, when the database is behind. */
  move: () => void
  /** The same, also when the last attempt has only just failed. Resolves when it is over. */
  moveAtLast: () => Promise<void>
  /** Settles when nothing is appended or tidied; undefined when that is so. */
  busy: () => Promise<void> | undefined
  /** Gives back the space of what was read. Only when not busy. */
  tidy: () => Promise<void>
}

export function createSpooler(options: { queue: FrameQueue; spool: Spool; log: Logger }): Spooler {
  const { queue, spool, log } = options
  let isBehind = spool.hasUnread()
  let work: Promise<void> | undefined
  let blockedUntil = 0
  let hasWarned = false

  const keepBusy = (started: Promise<void>): Promise<void> => {
    work = started.finally(() => {
      work = undefined
      // What came meanwhile.
      if (!queue.isEmpty()) move()
    })
    return work
  }
  const appendQueue = async () => {
    while (isBehind && !queue.isEmpty()) {
      const frames = queue.peek(batchLimits)
      try {
        await spool.append(frames.map(encodeFrame))
      } catch (error) {
        blockedUntil = performance.now() + retryMs
        if (!hasWarned) log.error({ err: error }, 'cannot spool what devices tell: it stays in memory, up to a limit')
        hasWarned = true
        return
      }
      hasWarned = false
      queue.settle(frames.at(-1)?.number ?? 0)
    }
  }
  const move = () => {
    if (!isBehind) return
    if (performance.now() < blockedUntil) queue.refuse(unavailable())
    else if (work === undefined) void keepBusy(appendQueue())
  }
  const fallBehind = () => {
    isBehind = true
    move()
  }
  return {
    isBehind: () => isBehind,
    fallBehind,
    catchUp: () => {
      isBehind = false
    },
    move,
    moveAtLast: async () => {
      await work
      blockedUntil = 0
      fallBehind()
      await work
    },
    busy: () => work,
    tidy: () => keepBusy(spool.tidy().catch((error: unknown) => log.warn({ err: error }, 'cannot tidy the spool'))),
  }
}
