import type { Deps } from '../deps.ts'
import { dropPartition, listPartitions, updateDroppedEnds } from './queries.ts'
import { isMonthOver } from './rules.ts'
import { lockSealing } from './seal-events.ts'

const dayMs = 24 * 3600_000

/** Drops the months all of which is older than `GODWIT_AUDIT_RETENTION_DAYS`. */
export async function dropOldEvents(deps: Pick<Deps, 'db' | 'clock' | 'config' | 'log'>): Promise<void> {
  const keepFrom = new Date(deps.clock().getTime() - deps.config.auditRetentionDays * dayMs)
  const old = (await listPartitions(deps.db)).filter((name) => isMonthOver(name, keepFrom))
  for (const partition of old) {
    await deps.db.transaction().execute(async (trx) => {
      await lockSealing(trx)
      // Another instance may have been faster.
      if (!(await listPartitions(trx)).includes(partition)) return
      await updateDroppedEnds(trx, { partition })
      await dropPartition(trx, { partition })
    })
    deps.log.info({ partition }, 'dropped a month of the audit log')
  }
}
