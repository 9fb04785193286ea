import { recordEvent } from '../audit/record-event.ts'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { type Actor, requirePerson } from '../http/actor.ts'
import { requireFeature } from '../plans/actions.ts'
import { findUserPlan } from '../plans/queries.ts'
import { monthOf } from '../time.ts'
import { lockUserAgainstDeletion } from '../users/queries.ts'
import { lockAndAuthorize } from './lock-and-authorize.ts'
import {
  findMember,
  findOrganization,
  findOwner,
  insertMember,
  insertOrganization,
  listPatchInstallCounts,
  updateDeletionStarted,
  updateMemberRole,
  updateOrganizationName,
} from './queries.ts'
import { listMemberResources } from './rules.ts'

export async function createTeamOrganization(deps: Deps, actor: Actor, input: { name: string }) {
  const { userId } = requirePerson(actor)
  return await deps.db.transaction().execute(async (trx) => {
    const plan = await findUserPlan(trx, { userId, defaultPlan: deps.config.defaultPlan })
    if (plan === undefined) throw new AppError('not_found')
    requireFeature(plan, 'team_organizations')
    const organization = await insertOrganization(trx, { name: input.name, organizationType: 'team' })
    await insertMember(trx, { organizationId: organization.id, userId, role: 'owner' })
    await recordEvent(deps, trx, actor, {
      operation: 'organization.create',
      organizationId: organization.id,
      resources: [{ type: 'organization', uid: organization.id }],
      details: { name: input.name },
    })
    return organization
  })
}

export async function getOrganization(deps: Deps, input: { organizationId: number }) {
  const organization = await findOrganization(deps.db, input)
  if (organization === undefined) throw new AppError('not_found')
  return organization
}

export async function renameOrganization(
  deps: Deps,
  actor: Actor,
  input: { organizationId: number; name: string },
): Promise<void> {
  const { organizationId, name } = input
  await deps.db.transaction().execute(async (trx) => {
    const permission = 'organization.update'
    const { name: previousName } = await lockAndAuthorize(deps, trx, { actor, permission, organizationId })
    if (previousName === name) return
    await updateOrganizationName(trx, { organizationId, name, at: deps.clock() })
    await recordEvent(deps, trx, actor, {
      operation: 'organization.rename',
      organizationId,
      resources: [{ type: 'organization', uid: organizationId }],
      details: { name, previous_name: previousName },
    })
  })
}

/** The owner before becomes an admin. The plan of the organization is the new owner's from then on. */
export async function transferOwnership(
  deps: Deps,
  actor: Actor,
  input: { organizationId: number; userId: number },
): Promise<void> {
  const { organizationId, userId } = input
  await deps.db.transaction().execute(async (trx) => {
    const permission = 'organization.transfer_ownership'
    const organization = await lockAndAuthorize(deps, trx, { actor, permission, organizationId })
    if (organization.organization_type === 'personal') throw new AppError('organization_is_personal')
    // An account that is deleted at the same time would leave the organization without an owner.
    await lockUserAgainstDeletion(trx, { id: userId })
    const member = await findMember(trx, { organizationId, userId })
    if (member === undefined) throw new AppError('user_not_found', 'user_id: must be a member')
    const owner = await findOwner(trx, { organizationId })
    if (owner?.user_id === userId) return
    if (owner !== undefined) await updateMemberRole(trx, { organizationId, userId: owner.user_id, role: 'admin' })
    await updateMemberRole(trx, { organizationId, userId, role: 'owner' })
    await recordEvent(deps, trx, actor, {
      operation: 'organization.ownership_transfer',
      organizationId,
      resources: listMemberResources({ organizationId, userId }),
      details: { email: member.email, previous_role: member.role, previous_owner_id: owner?.user_id },
    })
  })
}

export async function deleteOrganization(deps: Deps, actor: Actor, input: { organizationId: number }): Promise<void> {
  const { organizationId } = input
  await deps.db.transaction().execute(async (trx) => {
    const permission = 'organization.delete'
    const organization = await lockAndAuthorize(deps, trx, { actor, permission, organizationId })
    if (organization.organization_type === 'personal') throw new AppError('organization_is_personal')
    await startDeletion(deps, trx, { organizationId })
    // The job only finishes what is decided here, and nobody asks for it.
    await recordEvent(deps, trx, actor, {
      operation: 'organization.delete',
      organizationId,
      resources: [{ type: 'organization', uid: organizationId }],
      details: { name: organization.name },
    })
  })
}

/** Hides an organization, whose row the caller has locked, from everybody; a job removes it with all that is below it. */
export async function startDeletion(deps: Deps, trx: Db, input: { organizationId: number }): Promise<void> {
  await updateDeletionStarted(trx, { ...input, at: deps.clock() })
  await deps.jobs.requestOrganizationRemoval(trx, input)
}

export async function getUsage(deps: Deps, input: { organizationId: number }) {
  const { start, end } = monthOf(deps.clock())
  const apps = await listPatchInstallCounts(deps.db, { organizationId: input.organizationId, from: start, to: end })
  const total = apps.reduce((sum, { patch_install_count }) => sum + patch_install_count, 0)
  return {
    apps,
    patch_install_count: total,
    period_start: start.toISOString(),
    period_end: end.toISOString(),
  }
}
