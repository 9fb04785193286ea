import { randomUUID } from 'node:crypto'
import type { PatchCheckRequest, PatchEvent } from '@godwit/contract'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { Db } from '../db/connection.ts'
import { isDataRefused } from '../db/errors.ts'
import type { DeviceIndex } from '../devices/device-index.ts'
import { commitFrames } from './commit-frames.ts'
import { createEventQueue } from './event-queue.ts'
import { deleteWriter } from './frame-queries.ts'
import { createFrameWriter } from './frame-writer.ts'
import { createObservationBuffers } from './observation-buffers.ts'
import { openSpool } from './spool.ts'

/** Checks are gathered for as long. With the patience of the frame writer and an fsync, what a SIGKILL can lose. */
const gatherMs = 100
/** As long as a release_version may be. What is longer has no release, and would take more room than it is worth. */
const maxNameLength = 256
/** Frames that wait in memory, when not even the disk takes them. */
const maxBacklogBytes = 64 * 1024 ** 2

/** Records which devices were seen, and stores what they report. */
export type Recorder = {
  /** Takes a check that was answered. `rolledBack`: what devices of its release are told to uninstall. */
  recordCheck: (check: PatchCheckRequest, rolledBack: readonly number[]) => void
  /** Resolves when the event is stored durably. */
  storeEvent: (event: PatchEvent) => Promise<void>
  /** Resolves when all that was recorded before is in the database. Rejects with `unavailable` when that is away. */
  flush: () => Promise<void>
  /** Stores what is left, and takes nothing more. */
  stop: () => Promise<void>
  measure: () => {
    recorded: number
    dropped: { backlog: number; refused: number; name_too_long: number }
    backlogBytes: number
    spoolBytes: number
  }
}

export async function createRecorder(options: {
  db: Db
  deviceIndex: Pick<DeviceIndex, 'findApp'>
  config: Pick<Config, 'isActivityRecorded' | 'spoolDir' | 'maxSpoolBytes'>
  clock: () => Date
  log: Logger
  maxBacklogBytes?: number
}): Promise<Recorder> {
  const { db, deviceIndex, config, clock, log } = options
  const isRecording = config.isActivityRecorded
  const writerId = randomUUID()
  const forgetWriter = (id: string) => deleteWriter(db, { writerId: id }).catch(() => undefined)
  const spool = await openSpool({
    dir: config.spoolDir,
    writerId,
    maxBytes: config.maxSpoolBytes,
    log,
    onEmptied: forgetWriter,
  })
  let recorded = 0
  let tooLong = 0
  const writer = createFrameWriter({
    writerId,
    commit: async (frames) => {
      const newEvents = await commitFrames({ db, deviceIndex, isRecording }, frames)
      recorded += newEvents
    },
    isRefusal: isDataRefused,
    spool,
    log,
    maxQueueBytes: options.maxBacklogBytes ?? maxBacklogBytes,
  })
  const buffers = createObservationBuffers()
  const events = createEventQueue({
    write: (group) => {
      // A check that was answered before an event is counted before it: what the device ran depends on that.
      writeChecks()
      return writer.write({ segments: [], events: group })
    },
    clock,
  })
  let timer: NodeJS.Timeout | undefined
  let stopping: Promise<void> | undefined

  const writeChecks = () => {
    clearTimeout(timer)
    timer = undefined
    // What cannot be kept is counted by the writer: nobody waits for a check.
    if (!buffers.isEmpty()) writer.write({ segments: buffers.take(), events: [] }).catch(() => undefined)
  }
  const stop = async () => {
    writeChecks()
    events.stop()
    await writer.stop()
    if (writer.isCommitted()) await forgetWriter(writerId)
  }
  return {
    recordCheck: (check, rolledBack) => {
      const clientId = check.client_id
      if (!isRecording || stopping !== undefined || clientId === undefined || clientId === null || clientId === '')
        return
      if (check.release_version.length > maxNameLength || clientId.length > maxNameLength) {
        tooLong += 1
        return
      }
      buffers.add(check, clientId, rolledBack, clock().getTime())
      recorded += 1
      if (buffers.isFull()) writeChecks()
      else timer ??= setTimeout(writeChecks, gatherMs)
    },
    storeEvent: events.store,
    flush: async () => {
      writeChecks()
      events.send()
      await writer.flush()
    },
    stop: () => {
      stopping ??= stop()
      return stopping
    },
    measure: () => {
      const { queuedBytes, spoolBytes, droppedBacklog, droppedRefused } = writer.measure()
      return {
        recorded,
        dropped: { backlog: droppedBacklog, refused: droppedRefused, name_too_long: tooLong },
        backlogBytes: buffers.sizeBytes() + queuedBytes,
        spoolBytes,
      }
    },
  }
}
