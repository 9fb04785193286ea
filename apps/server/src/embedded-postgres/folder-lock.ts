import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'

const RETRY_EVERY_MS = 50
/** Covers the hand-over from a process that is just stopping, and an operator's command that is at work. */
const GIVE_UP_AFTER_MS = 3_000
const SQLITE_BUSY = 5

export class FolderInUseError extends Error {}

// A lock whose database object is collected as garbage would be released.
const held = new Set<DatabaseSync>()

/**
 * Takes the data folder for this process until the returned function is called.
 *
 * Node has no flock, but SQLite takes a kernel lock on its file (fcntl, LockFileEx on Windows): an open exclusive
 * transaction on an empty database is that lock. The kernel drops it with the process, whichever way it dies, so there is
 * nothing stale to reason about, unlike a file with a pid; it exists before there is a cluster and stays through a
 * restart of the postmaster, unlike an advisory lock in PostgreSQL; and two containers on one volume see each other.
 *
 * POSIX drops an fcntl lock when the process closes any handle of the file: nothing else here may open it.
 */
export async function lockFolder(lockFile: string, dataDir: string, waitMs = GIVE_UP_AFTER_MS): Promise<() => void> {
  const deadline = Date.now() + waitMs
  for (;;) {
    const release = tryLock(lockFile)
    if (release) return release
    if (Date.now() > deadline) {
      throw new FolderInUseError(
        `Another Godwit process is using the embedded database in ${dataDir}. Stop it first, give this one a data ` +
          'folder of its own, or set DATABASE_URL so that both share a PostgreSQL server.',
      )
    }
    await delay(RETRY_EVERY_MS)
  }
}

/** undefined: somebody else has it. */
export function tryLock(lockFile: string): (() => void) | undefined {
  const database = new DatabaseSync(lockFile, { timeout: 0 })
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined
    throw new Error(`Could not lock ${lockFile}: ${(error as Error).message}`, { cause: error })
  }
  held.add(database)
  return () => {
    if (held.delete(database)) database.close()
  }
}
