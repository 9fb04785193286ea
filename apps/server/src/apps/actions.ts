import { randomUUID } from 'node:crypto'
import { recordAppEvent, recordEvent } from '../audit/record-event.ts'
import { insertChannel } from '../channels/queries.ts'
import { defaultChannelName } from '../channels/rules.ts'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { notifyAppChanged } from '../devices/app-changes.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
import { authorizeOnApp } from '../http/authorize.ts'
import { updateOrganizationOfInvitations } from '../invitations/queries.ts'
import { lockAndAuthorize } from '../organizations/lock-and-authorize.ts'
import { lockAppAndAuthorize } from './lock-app.ts'
import {
  deleteApp as deleteAppRow,
  insertApp,
  lockApp,
  updateApp as updateAppRow,
  updateOrganizationOfApp,
} from './queries.ts'

const firstVersion = 1
const goneVersion = 0

/** Creates an app and the channel that devices ask for by default. */
export async function createApp(deps: Deps, actor: Actor, input: { organizationId: number; displayName: string }) {
  const app = await deps.db.transaction().execute(async (trx) => {
    const { organizationId } = input
    // An app that comes while its organization is being deleted would be missed, and keep the deletion from ending.
    await lockAndAuthorize(deps, trx, { actor, permission: 'app.create', organizationId })
    const created = await insertApp(trx, { id: randomUUID(), ...input })
    await insertChannel(trx, { appId: created.id, name: defaultChannelName })
    await notifyAppChanged(trx, { appId: created.id, version: firstVersion })
    await recordAppEvent(deps, trx, actor, { operation: 'app.create', ...describeApp(created.id) })
    return created
  })
  deps.deviceIndex.markChanged(app.id, firstVersion)
  return app
}

export async function updateApp(
  deps: Deps,
  actor: Actor,
  input: { appId: string; displayName: string },
): Promise<void> {
  const { appId, displayName } = input
  await deps.db.transaction().execute(async (trx) => {
    const app = await lockApp(trx, { appId })
    if (app === undefined) throw new AppError('not_found')
    if (app.display_name === displayName) return
    await updateAppRow(trx, input)
    await recordAppEvent(deps, trx, actor, {
      operation: 'app.update',
      ...describeApp(appId),
      details: { previous_name: app.display_name, name: displayName },
    })
  })
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
    const app = await updateOrganizationOfApp(trx, { appId, organizationId, at: deps.clock() })
    await updateOrganizationOfInvitations(trx, { appId, organizationId })
    // The log of either organization tells where the app came from or went.
    for (const log of [from, organizationId]) {
      await recordEvent(deps, trx, actor, {
        operation: 'app.transfer',
        organizationId: log,
        app: { id: appId, name: app.display_name },
        resources: [{ type: 'app', uid: appId }],
        details: { previous_organization_id: from, organization_id: organizationId },
      })
    }
  })
}

/** Deletes an app with everything below it. The bytes, and what its devices reported, follow in jobs. */
export async function deleteApp(deps: Deps, actor: Actor, input: { appId: string }): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    await lockAppAndAuthorize(deps, trx, { actor, permission: 'app.delete', appId: input.appId })
    if ((await lockApp(trx, input)) === undefined) throw new AppError('not_found')
    await recordAppEvent(deps, trx, actor, { operation: 'app.delete', ...describeApp(input.appId) })
    await deleteWithContent(deps, trx, input)
  })
  deps.deviceIndex.markChanged(input.appId, goneVersion)
}

/** The same as part of deleting its organization: that is the event, and the log ends with it. */
export async function removeApp(deps: Deps, input: { appId: string }): Promise<void> {
  await deps.db.transaction().execute((trx) => deleteWithContent(deps, trx, input))
  deps.deviceIndex.markChanged(input.appId, goneVersion)
}

async function deleteWithContent(deps: Deps, trx: Db, input: { appId: string }): Promise<void> {
  await deleteAppRow(trx, input)
  await notifyAppChanged(trx, { appId: input.appId, version: goneVersion })
  await deps.jobs.requestBlobSweep(trx)
  await deps.jobs.requestEventRemoval(trx, input)
}

function describeApp(appId: string) {
  return { appId, resources: [{ type: 'app' as const, uid: appId }] }
}
