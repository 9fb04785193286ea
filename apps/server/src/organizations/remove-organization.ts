import { removeApp } from '../apps/actions.ts'
import { listAppIds } from '../apps/queries.ts'
import type { Deps } from '../deps.ts'
import { deleteOrganizationInDeletion, isInDeletion, listOrganizationIdsInDeletion } from './queries.ts'

/**
 * Removes an organization whose deletion has begun. Each app goes in a transaction of its own, so that what was done
 * before a failure stays done; everything here may be done again, and twice at once.
 */
export async function removeOrganization(deps: Deps, input: { organizationId: number }): Promise<void> {
  if (!(await isInDeletion(deps.db, input))) return
  for (const appId of await listAppIds(deps.db, input)) await removeApp(deps, { appId })
  await deleteOrganizationInDeletion(deps.db, input)
}

/** For deletions whose job was lost or has failed too often. */
export async function resumeRemovals(deps: Deps): Promise<void> {
  for (const organizationId of await listOrganizationIdsInDeletion(deps.db)) {
    await deps.jobs.requestOrganizationRemoval(deps.db, { organizationId })
  }
}
