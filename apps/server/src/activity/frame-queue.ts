import { AppError } from '../errors.ts'
import { type Frame, type FrameContents, measureFrame } from './frames.ts'

export type BatchLimits = { sizeBytes: number; events: number }

/** Frames in memory, in the order of their numbers, until they are durable. */
export type FrameQueue = {
  /** Settles with the frame. undefined: there is no room. */
  push: (contents: FrameContents) => Promise<void> | undefined
  /** The first frames, at least one when there are any. */
  peek: (limits: BatchLimits) => Frame[]
  /** Removes the frames up to this number; their writers are told that they are durable, or why not. */
  settle: (through: number, error?: unknown) => void
  /** Tells all writers that wait that their frames are not durable. The frames stay. */
  refuse: (error: unknown) => void
  lastNumber: () => number
  isEmpty: () => boolean
  sizeBytes: () => number
}

type Queued = { frame: Frame; sizeBytes: number; resolve: () => void; reject: (error: unknown) => void }

export function createFrameQueue(options: { writerId: string; maxBytes: number }): FrameQueue {
  const { writerId, maxBytes } = options
  const queue: Queued[] = []
  let queuedBytes = 0
  let lastNumber = 0
  let refusedThrough = 0
  return {
    push: (contents) => {
      const sizeBytes = measureFrame(contents)
      if (queuedBytes + sizeBytes > maxBytes) return undefined
      lastNumber += 1
      queuedBytes += sizeBytes
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      queue.push({ frame: { writerId, number: lastNumber, ...contents }, sizeBytes, resolve, reject })
      return promise
    },
    peek: (limits) => {
      let sizeBytes = 0
      let events = 0
      const end = queue.findIndex((queued) => {
        const isBeyond = sizeBytes >= limits.sizeBytes || events >= limits.events
        sizeBytes += queued.sizeBytes
        events += queued.frame.events.length
        return isBeyond
      })
      return queue.slice(0, end === -1 ? undefined : end).map(({ frame }) => frame)
    },
    settle: (through, error) => {
      const next = queue.findIndex(({ frame }) => frame.number > through)
      for (const { sizeBytes, resolve, reject } of queue.splice(0, next === -1 ? queue.length : next)) {
        queuedBytes -= sizeBytes
        if (error === undefined) resolve()
        else reject(error)
      }
    },
    refuse: (error) => {
      // From the end: there may be many that were told before.
      for (let index = queue.length - 1; index >= 0; index -= 1) {
        const queued = queue[index]
        if (queued === undefined || queued.frame.number <= refusedThrough) break
        queued.reject(error)
      }
      refusedThrough = lastNumber
    },
    lastNumber: () => lastNumber,
    isEmpty: () => queue.length === 0,
    sizeBytes: () => queuedBytes,
  }
}

export function unavailable(): AppError {
  return new AppError('unavailable', undefined, { retryAfterSeconds: 5 })
}
