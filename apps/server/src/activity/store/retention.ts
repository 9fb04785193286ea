import { isPartitionOver, listPartitions } from '../../db/month-partitions.ts'
import { dayMs } from '../../time.ts'
import type { UnitKind } from './bitmap-units.ts'
import { purgeRemovedDevices } from './maintain-app.ts'
import { dropMonth, tableOf } from './partitions.ts'
import { deleteOldCounts, deleteOldImportMarks, deleteOldWriters, listAppsWithRemovedDevices } from './queries.ts'
import { readApp } from './read-app.ts'
import { oldestKeptMs } from './store-changes.ts'
import type { StoreContext } from './store-context.ts'

/** Within this time the lines of an import are known when they come again; later they count as new, and add nothing. */
const marksKeptMs = 7 * dayMs

/** What time alone asks for: drops the months that are too old, and takes removed devices out of the bitmaps. */
export async function keepRetention(context: StoreContext): Promise<void> {
  const hoursFrom = new Date(oldestKeptMs(context, 'hours'))
  const daysFrom = new Date(oldestKeptMs(context, 'days'))
  await dropOldMonths(context, 'hours', hoursFrom)
  await dropOldMonths(context, 'days', daysFrom)
  await deleteOldCounts(context.db, { hoursBefore: hoursFrom, countsBefore: daysFrom })
  await deleteOldImportMarks(context.db, { before: new Date(context.now() - marksKeptMs) })
  await deleteOldWriters(context.db, { before: daysFrom })
  for (const appId of await listAppsWithRemovedDevices(context.db)) {
    // Its state has to be in memory.
    await readApp(context, appId, async () => undefined)
    await purgeRemovedDevices(context, appId)
  }
}

/** One that is in use is left for the next time. */
async function dropOldMonths(context: StoreContext, kind: UnitKind, keepFrom: Date): Promise<void> {
  const names = await listPartitions(context.db, { table: tableOf[kind] })
  for (const name of names.filter((name) => isPartitionOver(name, keepFrom))) {
    try {
      await dropMonth(context.db, { kind, name })
      context.partitions.delete(name)
      context.log.info({ partition: name }, 'dropped a month of device activity')
    } catch (error) {
      context.log.warn({ err: error, partition: name }, 'cannot drop a month of device activity now')
    }
  }
}
