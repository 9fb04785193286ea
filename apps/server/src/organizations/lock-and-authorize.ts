import type { Permission } from '@godwit/contract'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
import { authorizeOnOrganization } from '../http/authorize.ts'
import { lockOrganization, lockServiceAccountRole } from './queries.ts'

/**
 * Locks an organization and judges the caller's right again, as it is now: since the request was let in, somebody may
 * have taken its role, or begun to delete the organization.
 */
export async function lockAndAuthorize(
  deps: Deps,
  trx: Db,
  input: { actor: Actor; permission: Permission; organizationId: number },
) {
  const organization = await lockOrganization(trx, input)
  if (organization === undefined) throw new AppError('not_found')
  const actor = await readActorAgain(trx, input.actor)
  await authorizeOnOrganization({ ...deps, db: trx }, actor, input.permission, input.organizationId)
  return organization
}

/** A person's roles are read with every judgement; the role of a service account came with its credential. */
export async function readActorAgain(trx: Db, actor: Actor): Promise<Actor> {
  if (actor.kind !== 'service_account') return actor
  const row = await lockServiceAccountRole(trx, actor)
  if (row === undefined) throw new AppError('not_found')
  return { ...actor, role: row.role }
}
