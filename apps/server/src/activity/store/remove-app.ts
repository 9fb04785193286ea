import { deleteApp, deleteRowsOfApp, deleteSegmentsOfApp, findApp, lockApp } from './queries.ts'
import type { StoreContext } from './store-context.ts'

/** Removes what is recorded of an app that was deleted. Whatever breaks it off, it can begin again. */
export async function removeApp(context: StoreContext, input: { appId: string }): Promise<void> {
  const { appId } = input
  await deleteSegmentsOfApp(context.db, { appId })
  const row = await findApp(context.db, { appId })
  if (row === undefined) return
  context.states.delete(appId)
  context.units.dropApp(row.id)
  while ((await deleteRowsOfApp(context.db, { app: row.id })) > 0);
  await context.db.transaction().execute(async (trx) => {
    // What a last import has added meanwhile goes with the row that it would have to lock.
    if ((await lockApp(trx, { appId })) === undefined) return
    while ((await deleteRowsOfApp(trx, { app: row.id })) > 0);
    await deleteApp(trx, { app: row.id })
  })
}
