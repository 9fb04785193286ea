import { dropPartition, isPartitionOver, listPartitions, lockForDrop } from '../db/month-partitions.ts'
import type { Deps } from '../deps.ts'
import { dayMs } from '../time.ts'
import { findLastTime, updateDroppedEnds } from './queries.ts'
import { lockSealing } from './seal-events.ts'

const table = 'audit_events'
const trustedSilenceMs = 31 * dayMs

/** Drops the months all of which is older than `GODWIT_AUDIT_RETENTION_DAYS`. */
export async function dropOldEvents(deps: Pick<Deps, 'db' | 'clock' | 'config' | 'log'>): Promise<void> {
  const newest = await findLastTime(deps.db, {})
  if (newest === undefined) return
  // A clock that is far ahead for a while must not cost the log: it counts for at most a month more than the events do.
  const now = Math.min(deps.clock().getTime(), newest.getTime() + trustedSilenceMs)
  const keepFrom = new Date(now - deps.config.auditRetentionDays * dayMs)
  const old = (await listPartitions(deps.db, { table })).filter((name) => isPartitionOver(name, keepFrom))
  for (const partition of old) {
    await deps.db.transaction().execute(async (trx) => {
      // The table first: behind a long reader this gives up, and nobody waits for the sealer's lock meanwhile.
      await lockForDrop(trx, { table })
      await lockSealing(trx)
      // Another instance may have been faster.
      if (!(await listPartitions(trx, { table })).includes(partition)) return
      await updateDroppedEnds(trx, { partition })
      await dropPartition(trx, { name: partition })
    })
    deps.log.info({ partition }, 'dropped a month of the audit log')
  }
}
