import { type FileHandle, open, rm } from 'node:fs/promises'
import type { BatchLimits } from './frame-queue.ts'
import { decodeFrame, type Frame, readFrameSize } from './frames.ts'

/** A file of frames: what is appended is read again from its beginning. Owned by one process, see `spool.ts`. */
export type SpoolFile = {
  /** Resolves when the frames would survive a power cut. After a failure the file is as it was before. */
  append: (frames: Buffer[]) => Promise<void>
  /** The next frames, at least one. Empty: what follows is not whole. */
  read: (limits: BatchLimits) => Promise<Batch>
  /** The batch was dealt with: the next read begins after it. */
  advance: (batch: Batch) => void
  hasUnread: () => boolean
  sizeBytes: () => number
  /** Gives the space back. Only when all of it was read. */
  reset: () => Promise<void>
  close: () => Promise<void>
  remove: () => Promise<void>
}

export type Batch = { frames: Frame[]; endsAt: number }

/** Twice what the largest frame takes: 1000 events, all as long as allowed. More is no frame, and may not fit into memory. */
const maxFrameBytes = 64 * 1024 ** 2

export async function openSpoolFile(path: string): Promise<SpoolFile> {
  const file = await open(path, 'a+').then(async (created) => {
    await created.close()
    // Not for appending: an append that failed is written over.
    return await open(path, 'r+')
  })
  let endsAt = (await file.stat()).size
  let readUntil = 0
  return {
    append: async (frames) => {
      const bytes = Buffer.concat(frames)
      try {
        await writeAll(file, bytes, endsAt)
        await file.datasync()
      } catch (error) {
        // What was written may be half a frame, and its space may be what others wait for.
        await file.truncate(endsAt).catch(() => undefined)
        throw error
      }
      endsAt += bytes.length
    },
    read: async (limits) => {
      const bytes = await readFrames(file, { from: readUntil, until: endsAt, sizeBytes: limits.sizeBytes })
      const frames: Frame[] = []
      let used = 0
      let events = 0
      while (events < limits.events) {
        const rest = bytes.subarray(used)
        const frame = decodeFrame(rest)
        if (frame === undefined) break
        frames.push(frame)
        events += frame.events.length
        used += readFrameSize(rest) ?? 0
      }
      // Nothing whole: its writer died in the middle of an append, which nobody was told had succeeded.
      return { frames, endsAt: frames.length === 0 ? endsAt : readUntil + used }
    },
    advance: (batch) => {
      readUntil = batch.endsAt
    },
    hasUnread: () => readUntil < endsAt,
    sizeBytes: () => endsAt,
    reset: async () => {
      // Also when the space cannot be had back: what is still there is old, and known by its numbers.
      endsAt = 0
      readUntil = 0
      await file.truncate(0)
    },
    close: () => file.close(),
    remove: async () => {
      await file.close()
      await rm(path, { force: true })
    },
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, position + written)
    written += bytesWritten
  }
}

/** At least one frame, however large it is. Ends in the middle of one, as a rule. */
async function readFrames(
  file: FileHandle,
  { from, until, sizeBytes }: { from: number; until: number; sizeBytes: number },
): Promise<Buffer> {
  const available = until - from
  const first = readFrameSize(await readAt(file, from, Math.min(8, available))) ?? 0
  if (first > maxFrameBytes) return Buffer.alloc(0)
  return await readAt(file, from, Math.min(available, Math.max(first, sizeBytes)))
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length)
  let read = 0
  while (read < length) {
    const { bytesRead } = await file.read(buffer, read, length - read, position + read)
    if (bytesRead === 0) break
    read += bytesRead
  }
  return buffer.subarray(0, read)
}
