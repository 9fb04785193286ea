import { randomUUID } from 'node:crypto'
import { insertChannel } from '../channels/queries.ts'
import { defaultChannelName } from '../channels/rules.ts'
import type { Deps } from '../deps.ts'
import { notifyAppChanged } from '../devices/app-changes.ts'
import { deleteApp as deleteAppRow, insertApp } from './queries.ts'

const firstVersion = 1
const goneVersion = 0

/** Creates an app and the channel that devices ask for by default. */
export async function createApp(deps: Deps, input: { organizationId: number; displayName: string }) {
  const app = await deps.db.transaction().execute(async (trx) => {
    const created = await insertApp(trx, { id: randomUUID(), ...input })
    await insertChannel(trx, { appId: created.id, name: defaultChannelName })
    await notifyAppChanged(trx, { appId: created.id, version: firstVersion })
    return created
  })
  deps.deviceIndex.markChanged(app.id, firstVersion)
  return app
}

/** Deletes an app with everything below it. The bytes, and what its devices reported, follow in jobs. */
export async function deleteApp(deps: Deps, input: { appId: string }): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    await deleteAppRow(trx, input)
    await notifyAppChanged(trx, { appId: input.appId, version: goneVersion })
    await deps.jobs.requestBlobSweep(trx)
    await deps.jobs.requestEventRemoval(trx, input)
  })
  deps.deviceIndex.markChanged(input.appId, goneVersion)
}
