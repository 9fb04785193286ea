import type { Permission } from '@godwit/contract'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
import { authorizeOnApp } from '../http/authorize.ts'
import { readActorAgain } from '../organizations/lock-and-authorize.ts'
import { lockOrganization } from '../organizations/queries.ts'
import { findOrganizationIdOfApp, lockAppAgainstDeletion } from './queries.ts'

/**
 * Locks the organization of an app, keeps the app in it, and judges the caller's right again, as it is now. Answers the
 * organization's id. With `alsoLock` that organization is locked too; all in the order of their ids.
 */
export async function lockAppAndAuthorize(
  deps: Deps,
  trx: Db,
  input: { actor: Actor; permission: Permission; appId: string; alsoLock?: number },
): Promise<number> {
  const { actor, permission, appId, alsoLock } = input
  for (;;) {
    const organizationId = await findOrganizationIdOfApp(trx, { appId })
    if (organizationId === undefined) throw new AppError('not_found')
    const ids = new Set([organizationId, alsoLock ?? organizationId])
    for (const id of [...ids].toSorted((a, b) => a - b)) await lockOrganization(trx, { organizationId: id })
    // Otherwise it has moved, or was deleted, while this waited.
    if (!(await lockAppAgainstDeletion(trx, { appId, organizationId }))) continue
    await authorizeOnApp({ ...deps, db: trx }, await readActorAgain(trx, actor), permission, appId)
    return organizationId
  }
}
