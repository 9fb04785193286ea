import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { tryLock } from '../embedded-postgres/folder-lock.ts'
import { syncFolder } from '../sync-folder.ts'
import type { BatchLimits } from './frame-queue.ts'
import { type Batch, openSpoolFile, type SpoolFile } from './spool-file.ts'

const framesSuffix = '.frames'
const lockSuffix = '.lock'

export class SpoolFullError extends Error {}

/**
 * Frames that wait on disk for the database, in a file per writer. Each has a lock of the kernel's beside it for as long as
 * its process lives, so that processes can share the folder: what has no owner any more is taken over.
 */
export type Spool = {
  append: (frames: Buffer[]) => Promise<void>
  /** Frames of one writer: those that were left behind first, then one's own. Empty: the rest of a file is not whole. */
  read: (limits: BatchLimits) => Promise<Batch>
  advance: (batch: Batch) => void
  hasUnread: () => boolean
  hasUnreadAfter: (batch: Batch) => boolean
  /** Whether there are files that others left behind. */
  hasLeft: () => boolean
  /** Whether there is anything to `tidy`, once nothing is unread. */
  hasRead: () => boolean
  /** Gives back the space of a file that was read to its end. Not while something is appended. */
  tidy: () => Promise<void>
  sizeBytes: () => number
  /** What is unread stays for whoever opens the spool next. */
  close: () => Promise<void>
}

type Owned = { writerId: string; file: SpoolFile; unlock: () => void; lockPath: string }

export async function openSpool(options: {
  dir: string
  writerId: string
  maxBytes: number
  log: Logger
  /** A file that was left behind is dealt with and gone. */
  onEmptied: (writerId: string) => Promise<void>
}): Promise<Spool> {
  const { dir, writerId, maxBytes, log, onEmptied } = options
  const left = await takeOver(dir, log)
  let own: Owned | undefined

  const createOwn = async (): Promise<Owned> => {
    await mkdir(dir, { recursive: true })
    const created = await openOwned(dir, writerId)
    if (created === undefined) throw new Error(`the spool file of ${writerId} has another owner`)
    await syncFolder(dir)
    return created
  }
  const current = () => (left[0] ?? own)?.file
  const sizeBytes = () => left.reduce((sum, { file }) => sum + file.sizeBytes(), own?.file.sizeBytes() ?? 0)
  return {
    append: async (frames) => {
      const added = frames.reduce((sum, { length }) => sum + length, 0)
      if (sizeBytes() + added > maxBytes) throw new SpoolFullError('the spool has reached its limit')
      own ??= await createOwn()
      await own.file.append(frames)
    },
    read: async (limits) => (await current()?.read(limits)) ?? { frames: [], endsAt: 0 },
    advance: (batch) => current()?.advance(batch),
    hasUnread: () => current()?.hasUnread() ?? false,
    hasUnreadAfter: (batch) =>
      batch.endsAt < (current()?.sizeBytes() ?? 0) || left.length > 1 || (left.length === 1 && own !== undefined),
    hasLeft: () => left.length > 0,
    hasRead: () => left.length > 0 || (own !== undefined && own.file.sizeBytes() > 0),
    tidy: async () => {
      const finished = left.shift()
      if (finished === undefined) return await own?.file.reset()
      await remove(finished)
      await onEmptied(finished.writerId)
    },
    sizeBytes,
    close: async () => {
      for (const owned of left) await leave(owned)
      if (own !== undefined) await (own.file.hasUnread() ? leave(own) : remove(own))
    },
  }
}

/** The spool files of processes that are gone, oldest first. */
async function takeOver(dir: string, log: Logger): Promise<Owned[]> {
  const names = await readdir(dir).catch(() => [])
  const taken: (Owned & { mtimeMs: number })[] = []
  for (const name of names.filter((found) => found.endsWith(framesSuffix))) {
    try {
      const { mtimeMs } = await stat(join(dir, name))
      const owned = await openOwned(dir, name.slice(0, -framesSuffix.length))
      if (owned !== undefined) taken.push({ ...owned, mtimeMs })
    } catch (error) {
      log.error({ err: error, file: name }, 'cannot take over a spool file: what it holds waits for the next start')
    }
  }
  return taken.toSorted((a, b) => a.mtimeMs - b.mtimeMs)
}

/** undefined: its owner lives. */
async function openOwned(dir: string, writerId: string): Promise<Owned | undefined> {
  const lockPath = join(dir, writerId + lockSuffix)
  const unlock = tryLock(lockPath)
  if (unlock === undefined) return undefined
  try {
    const file = await openSpoolFile(join(dir, writerId + framesSuffix))
    return { writerId, file, unlock, lockPath }
  } catch (error) {
    unlock()
    throw error
  }
}

async function leave({ file, unlock }: Owned): Promise<void> {
  await file.close().finally(unlock)
}

async function remove({ file, unlock, lockPath }: Owned): Promise<void> {
  await file.remove().finally(unlock)
  await rm(lockPath, { force: true })
}
