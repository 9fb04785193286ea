import type { ApiKeyExpiry, ServiceAccountRole } from '@godwit/contract'
import { createApiKey } from '../api-keys/actions.ts'
import { listApiKeys, updateApiKeyAsRevoked } from '../api-keys/queries.ts'
import { chooseExpiry } from '../api-keys/rules.ts'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { lockOrganizationAgainstDeletion } from '../organizations/queries.ts'
import { requireRoleInPlan } from '../plans/actions.ts'
import {
  deleteServiceAccount,
  findServiceAccount,
  insertServiceAccount,
  lockServiceAccount,
  updateServiceAccountRole,
} from './queries.ts'

/** A service account by the path that names it: one of another organization is not there. */
export type ServiceAccountPath = { organizationId: number; serviceAccountId: number }

const initialRole: ServiceAccountRole = 'developer'

/** Its keys and its tokens do what its role allows, so they need no level of their own. */
const keyPermission = 'full'

export async function createServiceAccount(deps: Deps, input: { organizationId: number; name: string }) {
  const { organizationId, name } = input
  return await deps.db.transaction().execute(async (trx) => {
    if (!(await lockOrganizationAgainstDeletion(trx, { organizationId }))) throw new AppError('not_found')
    return await insertServiceAccount(trx, { organizationId, name, role: initialRole, at: deps.clock() })
  })
}

export async function changeServiceAccountRole(
  deps: Deps,
  input: ServiceAccountPath & { role: ServiceAccountRole },
): Promise<void> {
  const { organizationId, serviceAccountId, role } = input
  await deps.db.transaction().execute(async (trx) => {
    const account = await getLockedServiceAccount(trx, input)
    // A role that it has already stays, also when the plan no longer includes it.
    if (account.role === role) return
    await requireRoleInPlan(deps, trx, { organizationId, role })
    await updateServiceAccountRole(trx, { serviceAccountId, role, at: deps.clock() })
  })
}

export async function removeServiceAccount(deps: Deps, input: ServiceAccountPath): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    await getLockedServiceAccount(trx, input)
    await deleteServiceAccount(trx, input)
  })
}

export async function getServiceAccount(db: Db, input: ServiceAccountPath) {
  const account = await findServiceAccount(db, input)
  if (account === undefined) throw new AppError('not_found')
  return account
}

export async function getLockedServiceAccount(db: Db, input: ServiceAccountPath) {
  const account = await lockServiceAccount(db, input)
  if (account === undefined) throw new AppError('not_found')
  return account
}

export async function listServiceAccountKeys(deps: Deps, input: ServiceAccountPath) {
  const { id } = await getServiceAccount(deps.db, input)
  return await listApiKeys(deps.db, { holder: { serviceAccountId: id } })
}

export async function createServiceAccountKey(
  deps: Deps,
  input: ServiceAccountPath & { name: string; expiresIn: ApiKeyExpiry },
) {
  const now = deps.clock()
  return await deps.db.transaction().execute(async (trx) => {
    const { id } = await getLockedServiceAccount(trx, input)
    return await createApiKey(trx, {
      holder: { serviceAccountId: id },
      name: input.name,
      permission: keyPermission,
      createdAt: now,
      expiresAt: chooseExpiry(input.expiresIn, now),
    })
  })
}

export async function revokeServiceAccountKey(
  deps: Deps,
  input: ServiceAccountPath & { keyId: number },
): Promise<void> {
  const { serviceAccountId, keyId } = input
  await deps.db.transaction().execute(async (trx) => {
    await getLockedServiceAccount(trx, input)
    const isTheirs = await updateApiKeyAsRevoked(trx, { id: keyId, holder: { serviceAccountId }, at: deps.clock() })
    if (!isTheirs) throw new AppError('not_found')
  })
}
