import type { ApiKeyExpiry, ServiceAccountRole } from '@godwit/contract'
import { createApiKey } from '../api-keys/actions.ts'
import { listApiKeys, updateApiKeyAsRevoked } from '../api-keys/queries.ts'
import { chooseExpiry } from '../api-keys/rules.ts'
import { recordEvent } from '../audit/record-event.ts'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
import { lockAndAuthorize } from '../organizations/lock-and-authorize.ts'
import { requireRoleInPlan } from '../plans/actions.ts'
import {
  deleteServiceAccount,
  findServiceAccount,
  findServiceAccountKey,
  insertServiceAccount,
  lockServiceAccount,
  updateServiceAccountRole,
} from './queries.ts'
import { listServiceAccountResources } from './rules.ts'

/** A service account by the path that names it: one of another organization is not there. */
export type ServiceAccountPath = { organizationId: number; serviceAccountId: number }

const permission = 'service_accounts.manage'

const initialRole: ServiceAccountRole = 'developer'

/** Its keys and its tokens do what its role allows, so they need no level of their own. */
const keyPermission = 'full'

export async function createServiceAccount(deps: Deps, actor: Actor, input: { organizationId: number; name: string }) {
  const { organizationId, name } = input
  return await deps.db.transaction().execute(async (trx) => {
    await lockAndAuthorize(deps, trx, { actor, permission, organizationId })
    const account = await insertServiceAccount(trx, { organizationId, name, role: initialRole, at: deps.clock() })
    await recordEvent(deps, trx, actor, {
      operation: 'service_account.create',
      organizationId,
      resources: listServiceAccountResources({ organizationId, serviceAccountId: account.id }),
      details: { name, role: initialRole },
    })
    return account
  })
}

export async function changeServiceAccountRole(
  deps: Deps,
  actor: Actor,
  input: ServiceAccountPath & { role: ServiceAccountRole },
): Promise<void> {
  const { organizationId, serviceAccountId, role } = input
  await deps.db.transaction().execute(async (trx) => {
    const account = await lockManagedAccount(deps, trx, actor, input)
    // A role that it has already stays, also when the plan no longer includes it.
    if (account.role === role) return
    await requireRoleInPlan(deps, trx, { organizationId, role })
    await updateServiceAccountRole(trx, { serviceAccountId, role, at: deps.clock() })
    await recordEvent(deps, trx, actor, {
      operation: 'service_account.role_update',
      organizationId,
      resources: listServiceAccountResources(input),
      details: { name: account.name, role, previous_role: account.role },
    })
  })
}

export async function removeServiceAccount(deps: Deps, actor: Actor, input: ServiceAccountPath): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    const { name, role } = await lockManagedAccount(deps, trx, actor, input)
    await deleteServiceAccount(trx, input)
    await recordEvent(deps, trx, actor, {
      operation: 'service_account.delete',
      organizationId: input.organizationId,
      resources: listServiceAccountResources(input),
      details: { name, previous_role: role },
    })
  })
}

export async function getServiceAccount(db: Db, input: ServiceAccountPath) {
  const account = await findServiceAccount(db, input)
  if (account === undefined) throw new AppError('not_found')
  return account
}

/** The account, once the caller's right has been judged again: somebody who is being removed must leave no key behind. */
export async function lockManagedAccount(deps: Deps, trx: Db, actor: Actor, input: ServiceAccountPath) {
  await lockAndAuthorize(deps, trx, { actor, permission, organizationId: input.organizationId })
  const account = await lockServiceAccount(trx, input)
  if (account === undefined) throw new AppError('not_found')
  return account
}

export async function listServiceAccountKeys(deps: Deps, input: ServiceAccountPath) {
  const { id } = await getServiceAccount(deps.db, input)
  return await listApiKeys(deps.db, { holder: { serviceAccountId: id } })
}

export async function createServiceAccountKey(
  deps: Deps,
  actor: Actor,
  input: ServiceAccountPath & { name: string; expiresIn: ApiKeyExpiry },
) {
  const now = deps.clock()
  return await deps.db.transaction().execute(async (trx) => {
    const { id } = await lockManagedAccount(deps, trx, actor, input)
    const key = await createApiKey(trx, {
      holder: { serviceAccountId: id },
      name: input.name,
      permission: keyPermission,
      createdAt: now,
      expiresAt: chooseExpiry(input.expiresIn, now),
    })
    await recordEvent(deps, trx, actor, {
      operation: 'service_account_key.create',
      organizationId: input.organizationId,
      resources: [{ type: 'service_account_key', uid: key.id }, ...listServiceAccountResources(input)],
      details: { name: key.name, expires_at: key.expires_at?.toISOString() },
    })
    return key
  })
}

export async function revokeServiceAccountKey(
  deps: Deps,
  actor: Actor,
  input: ServiceAccountPath & { keyId: number },
): Promise<void> {
  const { serviceAccountId, keyId } = input
  await deps.db.transaction().execute(async (trx) => {
    await lockManagedAccount(deps, trx, actor, input)
    const key = await findServiceAccountKey(trx, input)
    if (key === undefined) throw new AppError('not_found')
    if (key.revoked_at !== null) return
    await updateApiKeyAsRevoked(trx, { id: keyId, holder: { serviceAccountId }, at: deps.clock() })
    await recordEvent(deps, trx, actor, {
      operation: 'service_account_key.revoke',
      organizationId: input.organizationId,
      resources: [{ type: 'service_account_key', uid: keyId }, ...listServiceAccountResources(input)],
      details: { name: key.name },
    })
  })
}
