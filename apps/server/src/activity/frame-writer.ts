import type { Logger } from 'pino'
import { type BatchLimits, createFrameQueue, unavailable } from './frame-queue.ts'
import { countObservations, type Frame, type FrameContents } from './frames.ts'
import type { Spool } from './spool.ts'
import { createSpooler } from './spooler.ts'

/** A commit that takes longer is a database in trouble: what waits for it goes to the spool. */
const patienceMs = 75
const firstRetryMs = 100
const lastRetryMs = 1000
/** What is committed together, and read from the spool at once. */
const batchLimits: BatchLimits = { sizeBytes: 4 * 1024 ** 2, events: 2000 }
const oneFrame: BatchLimits = { sizeBytes: 1, events: 1 }
/** How long readers wait until what was recorded is committed. */
const flushPatienceMs = 5000
/** How long a stop goes on committing what is in the spool. */
const stopPatienceMs = 5000

export type FrameWriter = {
  /** Resolves when the frame is durable: committed, or in the spool. When it rejects, it may still be committed later. */
  write: (contents: FrameContents) => Promise<void>
  /** Resolves when all that was written before is committed. Rejects with `unavailable` when the database is away. */
  flush: () => Promise<void>
  /** Commits what is left, or leaves it in the spool. */
  stop: () => Promise<void>
  /** Whether all that was written is committed. */
  isCommitted: () => boolean
  measure: () => { queuedBytes: number; spoolBytes: number; droppedBacklog: number; droppedRefused: number }
}

type Pending = { frames: Frame[]; settle: (error?: unknown) => void }
type Flush = { through: number; resolve: () => void; reject: (error: unknown) => void }

/**
 * Brings frames to the database, in their order, each exactly once. As long as it takes them they go there from memory;
 * when it does not, all of them go through the spool until that is empty again.
 */
export function createFrameWriter(options: {
  writerId: string
  /** Commits frames of one writer, in one transaction. */
  commit: (frames: Frame[]) => Promise<void>
  /** Whether the frame itself is at fault, so that it would fail for ever. */
  isRefusal: (error: unknown) => boolean
  spool: Spool
  log: Logger
  maxQueueBytes: number
}): FrameWriter {
  const { writerId, commit, isRefusal, spool, log, maxQueueBytes } = options
  const queue = createFrameQueue({ writerId, maxBytes: maxQueueBytes })
  const spooler = createSpooler({ queue, spool, log })
  const dropped = { backlog: 0, refused: 0 }
  let committedNumber = 0
  let flushes: Flush[] = []
  let working: Promise<void> | undefined
  let endPause = () => {}
  let failures = 0
  /** After a refusal as many frames are committed one by one, to find the one at fault. */
  let singles = 0
  let stopsAt: number | undefined
  let hasGivenUp = false
  let isAway = false

  const settleFlushes = () => {
    const isDue = ({ through }: Flush) => through <= committedNumber && !spool.hasLeft()
    const due = flushes.filter(isDue)
    flushes = flushes.filter((flush) => !isDue(flush))
    for (const { resolve } of due) resolve()
  }
  const settleCommitted = (frames: Frame[], error?: unknown) => {
    const last = frames.at(-1)
    if (last?.writerId === writerId) {
      committedNumber = Math.max(committedNumber, last.number)
      queue.settle(committedNumber, error)
    }
    settleFlushes()
  }
  const readSpool = async (limits: BatchLimits): Promise<Pending> => {
    const batch = await spool.read(limits)
    if (batch.frames.length === 0)
      log.warn('the end of a spool file is not whole: its writer was killed, and it is dropped')
    // What comes from now on can wait in memory for this last batch.
    if (!spool.hasUnreadAfter(batch)) spooler.catchUp()
    const settle = (error?: unknown) => {
      spool.advance(batch)
      settleCommitted(batch.frames, error)
    }
    return { frames: batch.frames, settle }
  }
  const next = async (): Promise<Pending | 'nothing'> => {
    const limits = singles > 0 ? oneFrame : batchLimits
    for (;;) {
      if (spool.hasUnread()) return await readSpool(limits)
      const busy = spooler.busy()
      if (busy !== undefined) await busy
      else if (spool.hasRead()) {
        await spooler.tidy()
        settleFlushes()
      } else {
        spooler.catchUp()
        const frames = queue.peek(limits)
        return frames.length === 0 ? 'nothing' : { frames, settle: (error) => settleCommitted(frames, error) }
      }
    }
  }

  /** Whether the frames were dealt with. */
  const tryCommit = async ({ frames, settle }: Pending): Promise<boolean> => {
    const late = setTimeout(spooler.fallBehind, patienceMs)
    try {
      if (frames.length > 0) await commit(frames)
      if (isAway) log.info('the database takes again what devices tell')
      isAway = false
      failures = 0
      singles = Math.max(0, singles - 1)
      settle()
      return true
    } catch (error) {
      if (isRefusal(error)) return dealWithRefusal({ frames, settle }, error)
      failures += 1
      if (!isAway) log.warn({ err: error }, 'the database does not take what devices tell: it is spooled')
      isAway = true
      for (const { reject } of flushes.splice(0)) reject(unavailable())
      spooler.fallBehind()
      return false
    } finally {
      clearTimeout(late)
    }
  }
  const dealWithRefusal = ({ frames, settle }: Pending, error: unknown): boolean => {
    if (frames.length > 1) {
      singles = frames.length
      return true
    }
    log.error({ err: error, frame: frames[0]?.number }, 'dropped what devices told, because the database refuses it')
    dropped.refused += countObservations(frames.flatMap(({ segments }) => segments))
    singles = 0
    settle(error)
    return true
  }
  const pause = () =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.min(lastRetryMs, firstRetryMs * 2 ** Math.max(0, failures - 1)))
      endPause = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  const work = async () => {
    for (;;) {
      const pending = await next().catch((error: unknown) => log.error({ err: error }, 'cannot read the spool'))
      if (pending === 'nothing') return
      const isDone = pending !== undefined && (await tryCommit(pending))
      if (stopsAt !== undefined && (!isDone || performance.now() > stopsAt)) {
        hasGivenUp = true
        return
      }
      if (!isDone) await pause()
    }
  }
  const startWork = () => {
    working ??= work().finally(() => {
      working = undefined
      if (!hasGivenUp && !queue.isEmpty()) startWork()
    })
  }
  startWork()

  return {
    write: (contents) => {
      const durable = queue.push(contents)
      spooler.move()
      startWork()
      if (durable !== undefined) return durable
      dropped.backlog += countObservations(contents.segments)
      return Promise.reject(unavailable())
    },
    flush: async () => {
      const through = queue.lastNumber()
      if (through <= committedNumber && !spool.hasLeft()) return
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const giveUp = setTimeout(() => reject(unavailable()), flushPatienceMs)
      flushes.push({ through, resolve, reject })
      endPause()
      await promise.finally(() => clearTimeout(giveUp))
    },
    stop: async () => {
      stopsAt = performance.now() + stopPatienceMs
      endPause()
      spooler.move()
      startWork()
      while (working !== undefined) await working
      if (!queue.isEmpty()) await spooler.moveAtLast()
      const lost = countObservations(
        queue.peek({ sizeBytes: Infinity, events: Infinity }).flatMap((frame) => frame.segments),
      )
      if (lost > 0)
        log.error({ observations: lost }, 'stopped with observations that neither the database nor the disk took')
      dropped.backlog += lost
      queue.refuse(unavailable())
      await spool.close()
    },
    isCommitted: () => queue.lastNumber() <= committedNumber,
    measure: () => ({
      queuedBytes: queue.sizeBytes(),
      spoolBytes: spool.sizeBytes(),
      droppedBacklog: dropped.backlog,
      droppedRefused: dropped.refused,
    }),
  }
}
