import { mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { tryLock } from '../embedded-postgres/folder-lock.ts'
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
  /** Frames of one writer: those that were left behind first, then one's own. */
  read: (limits: { sizeBytes: number; events: number }) => Promise<Batch>
  advance: (batch: Batch) => void
  hasUnread: () => boolean
  hasUnreadAfter: (batch: Batch) => boolean
  /** Whether frames of others wait, or may. */
  hasLeft: () => boolean
  /** Whether there is anything to `tidy`: files that were read to their end. */
  hasRead: () => boolean
  /** Removes what was read to its end. Not while something is appended. */
  tidy: () => Promise<void>
  sizeBytes: () => number
  close: () => Promise<void>
}

type Owned = { file: SpoolFile; path: string; release: () => void }

export async function openSpool(options: { dir: string; writerId: string; maxBytes: number }): Promise<Spool> {
  const { dir, writerId, maxBytes } = options
  const left = await takeOver(dir)
  let own: Owned | undefined

  const openOwn = async (): Promise<Owned> => {
    await mkdir(dir, { recursive: true })
    const created = await openOwned(dir, writerId)
    if (created === undefined) throw new Error(`the spool file of ${writerId} has another owner`)
    await syncFolder(dir)
    return created
  }
  const sizeBytes = () =>
    [...left, ...(own === undefined ? [] : [own])].reduce((sum, { file }) => sum + file.sizeBytes(), 0)
  const current = () => left[0] ?? own
  return {
    append: async (frames) => {
      const added = frames.reduce((sum, { length }) => sum + length, 0)
      if (sizeBytes() + added > maxBytes) throw new SpoolFullError('the spool has reached its limit')
      own ??= await openOwn()
      await own.file.append(frames)
    },
    read: async (limits) => (await current()?.file.read(limits)) ?? { frames: [], endsAt: 0 },
    advance: (batch) => current()?.file.advance(batch),
    hasUnread: () => current()?.file.hasUnread() ?? false,
    hasUnreadAfter: (batch) => left.length > 1 || batch.endsAt < (current()?.file.sizeBytes() ?? 0),
    hasLeft: () => left.length > 0,
    hasRead: () => left.length > 0 || (own !== undefined && own.file.sizeBytes() > 0),
    tidy: async () => {
      const finished = left[0]
      if (finished !== undefined) {
        await removeOwned(finished)
        left.shift()
      } else await own?.file.reset()
    },
    sizeBytes,
    close: async () => {
      for (const { file, release } of left) {
        await file.close()
        release()
      }
      if (own === undefined) return
      if (own.file.hasUnread()) {
        await own.file.close()
        own.release()
      } else await removeOwned(own)
    },
  }
}

/** The spool files of processes that are gone. */
async function takeOver(dir: string): Promise<Owned[]> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const writerIds = names
    .filter((name) => name.endsWith(framesSuffix))
    .map((name) => name.slice(0, -framesSuffix.length))
  const taken = await Promise.all(
    writerIds.map(async (writerId) => {
      const owned = await openOwned(dir, writerId)
      if (owned === undefined) return []
      const { mtimeMs } = await stat(owned.path)
      return [{ ...owned, mtimeMs }]
    }),
  )
  return taken.flat().toSorted((a, b) => a.mtimeMs - b.mtimeMs)
}

/** undefined: its owner lives. */
async function openOwned(dir: string, writerId: string): Promise<Owned | undefined> {
  const path = join(dir, writerId + framesSuffix)
  const lockPath = join(dir, writerId + lockSuffix)
  const unlock = tryLock(lockPath)
  if (unlock === undefined) return undefined
  return { file: await openSpoolFile(path), path, release: unlock }
}

async function removeOwned({ file, path, release }: Owned): Promise<void> {
  await file.remove()
  release()
  await rm(path.slice(0, -framesSuffix.length) + lockSuffix, { force: true })
}

/** A new file survives a power cut only when its folder was written too. */
async function syncFolder(dir: string): Promise<void> {
  const folder = await open(dir, 'r')
  await folder.sync().finally(() => folder.close())
}
