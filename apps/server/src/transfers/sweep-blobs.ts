import { canRemoveBytes } from '../backup/backup-lock.ts'
import type { Deps } from '../deps.ts'
import { deleteBlobs, deleteExpiredArtifacts, listUnfinishedBlobs, lockUnusedBlobs } from './queries.ts'

/** Blobs that one transaction removes: it holds their locks while the store works. */
const batchSize = 100

/** Pieces of a blob that is not being uploaded are left alone so long: it may be copied from another store. */
const leftoverAgeMs = 24 * 60 * 60 * 1000

/**
 * Removes the bytes that no artifact refers to, after the registrations whose bytes did not arrive in time. The row goes
 * after the bytes: a crash in between leaves a row, which the next sweep finds. Several sweeps may run at once. While a backup
 * runs, which may still have to copy the bytes, nothing is removed: a later sweep does it.
 */
export async function sweepBlobs(deps: Deps): Promise<{ removed: number; leftovers: number }> {
  const now = deps.clock()
  await deleteExpiredArtifacts(deps.db, { table: 'release_artifacts', now })
  await deleteExpiredArtifacts(deps.db, { table: 'patch_artifacts', now })
  let removed = 0
  for (;;) {
    const count = await removeBatch(deps)
    removed += count
    if (count < batchSize) break
  }
  const leftovers = await deps.blobs.removeLeftovers({
    before: new Date(now.getTime() - leftoverAgeMs),
    findUnfinished: async (keys) => new Set(await listUnfinishedBlobs(deps.db, { keys })),
  })
  return { removed, leftovers }
}

async function removeBatch(deps: Deps): Promise<number> {
  return await deps.db.transaction().execute(async (trx) => {
    if (!(await canRemoveBytes(trx))) return 0
    const keys = await lockUnusedBlobs(trx, { limit: batchSize })
    for (const key of keys) await deps.blobs.remove(key)
    if (keys.length > 0) await deleteBlobs(trx, { keys })
    return keys.length
  })
}
