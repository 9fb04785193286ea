import { randomUUID } from 'node:crypto'
import { insertChannel } from '../channels/queries.ts'
import { defaultChannelName } from '../channels/rules.ts'
import type { Deps } from '../deps.ts'
import { notifyAppChanged } from '../devices/app-changes.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
import { authorizeOnApp } from '../http/authorize.ts'
import { updateOrganizationOfInvitations } from '../invitations/queries.ts'
import { lockAndAuthorize } from '../organizations/lock-and-authorize.ts'
import { lockOrganizationAgainstDeletion } from '../organizations/queries.ts'
import { lockAppAndAuthorize } from './lock-app.ts'
import { deleteApp as deleteAppRow, insertApp, updateOrganizationOfApp } from './queries.ts'

const firstVersion = 1
const goneVersion = 0

/** Creates an app and the channel that devices ask for by default. */
export async function createApp(deps: Deps, input: { organizationId: number; displayName: string }) {
  const app = await deps.db.transaction().execute(async (trx) => {
    // An app that comes while its organization is being deleted would be missed, and keep the deletion from ending.
    if (!(await lockOrganizationAgainstDeletion(trx, input))) throw new AppError('not_found')
    const created = await insertApp(trx, { id: randomUUID(), ...input })
    await insertChannel(trx, { appId: created.id, name: defaultChannelName })
    await notifyAppChanged(trx, { appId: created.id, version: firstVersion })
    return created
  })
  deps.deviceIndex.markChanged(app.id, firstVersion)
  return app
}

/** Moves an app, with its collaborators and invitations, into an organization. The right is needed in both. */
export async function transferApp(
  deps: Deps,
  actor: Actor,
  input: { appId: string; organizationId: number },
): Promise<void> {
  const { appId, organizationId } = input
  const permission = 'app.transfer'
  await authorizeOnApp(deps, actor, permission, appId)
  await deps.db.transaction().execute(async (trx) => {
    const from = await lockAppAndAuthorize(deps, trx, { actor, permission, appId, alsoLock: organizationId })
    await lockAndAuthorize(deps, trx, { actor, permission, organizationId })
    if (from === organizationId) return
    await updateOrganizationOfApp(trx, { appId, organizationId, at: deps.clock() })
    await updateOrganizationOfInvitations(trx, { appId, organizationId })
  })
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
