import { dayMs } from './apply-observations.ts'
import { purgeRemovedDevices } from './maintain-app.ts'
import { dropOldPartitions } from './partitions.ts'
import { deleteOldCounts, deleteOldImportMarks, deleteOldWriters, listAppsWithRemovedDevices } from './queries.ts'
import { drainApp } from './read-app.ts'
import { oldestKeptMs } from './store-changes.ts'
import type { StoreContext } from './store-context.ts'

/** Within this time the lines of an import are known when they come again; later they count as new, and add nothing. */
const marksKeptMs = 7 * dayMs

/** What time alone asks for: drops the months that are too old, and takes removed devices out of the bitmaps. */
export async function keepRetention(context: StoreContext): Promise<void> {
  const hoursFrom = new Date(oldestKeptMs(context, 'hours'))
  const daysFrom = new Date(oldestKeptMs(context, 'days'))
  for (const [kind, keepFrom] of [
    ['hours', hoursFrom],
    ['days', daysFrom],
  ] as const) {
    for (const partition of await dropOldPartitions(context.db, { kind, keepFrom })) {
      context.partitions.delete(partition)
      context.log.info({ partition }, 'dropped a month of device activity')
    }
  }
  await deleteOldCounts(context.db, { hoursBefore: hoursFrom, countsBefore: daysFrom })
  await deleteOldImportMarks(context.db, { before: new Date(context.now() - marksKeptMs) })
  await deleteOldWriters(context.db, { before: daysFrom })
  for (const appId of await listAppsWithRemovedDevices(context.db)) {
    // Its state has to be in memory.
    await context.exclusively(appId, () => drainApp(context, appId))
    await purgeRemovedDevices(context, appId)
  }
}
