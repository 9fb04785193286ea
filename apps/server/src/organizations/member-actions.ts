import type { InvitedRole } from '@godwit/contract'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
import { inviteToOrganization } from '../invitations/actions.ts'
import { updatePendingInvitationAccepted } from '../invitations/queries.ts'
import { requireOrganizationFeature, requireRoleInPlan } from '../plans/actions.ts'
import { findUserByEmail, lockUserAgainstDeletion } from '../users/queries.ts'
import { requireAllowedDomain } from './allowed-domains.ts'
import { lockAndAuthorize } from './lock-and-authorize.ts'
import { deleteMember, findMember, insertMember, updateMemberRole } from './queries.ts'

const permission = 'members.manage'

/**
 * Adds the account with this e-mail, or invites. An account that has not shown that the e-mail is its own is invited as
 * if there were none: an e-mail alone must not give rights.
 */
export async function addMember(
  deps: Deps,
  actor: Actor,
  input: { organizationId: number; email: string; role: InvitedRole },
) {
  const { organizationId, email, role } = input
  return await deps.db.transaction().execute(async (trx) => {
    const organization = await lockAndAuthorize(deps, trx, { actor, permission, organizationId })
    if (organization.organization_type === 'personal') throw new AppError('organization_is_personal')
    const user = await findUserByEmail(trx, { email })
    const member = user && (await findMember(trx, { organizationId, userId: user.id }))
    if (member !== undefined && member.role !== role) throw new AppError('already_member', `role: is ${member.role}`)
    if (member !== undefined) return { status: 'added' as const }
    await requireOrganizationFeature(deps, trx, { organizationId, feature: 'team_organizations' })
    await requireRoleInPlan(deps, trx, { organizationId, role })
    await requireAllowedDomain(trx, { organizationId, email })
    const locked = user && (await lockUserAgainstDeletion(trx, { id: user.id }))
    if (locked === undefined || locked.email_verified_at === null) {
      const created = await inviteToOrganization(deps, trx, { actor, organization, email, role })
      return { status: 'invited' as const, ...created }
    }
    await insertMember(trx, { organizationId, userId: locked.id, role })
    // Left open, it would let the member come back after having been removed.
    await updatePendingInvitationAccepted(trx, { organizationId, appId: null, email, userId: locked.id })
    return { status: 'added' as const }
  })
}

export async function changeMemberRole(
  deps: Deps,
  actor: Actor,
  input: { organizationId: number; userId: number; role: InvitedRole },
): Promise<void> {
  const { organizationId, role } = input
  await deps.db.transaction().execute(async (trx) => {
    await lockAndAuthorize(deps, trx, { actor, permission, organizationId })
    const current = await getChangeableRole(trx, input)
    if (current === role) return
    await requireRoleInPlan(deps, trx, { organizationId, role })
    await updateMemberRole(trx, input)
  })
}

export async function removeMember(
  deps: Deps,
  actor: Actor,
  input: { organizationId: number; userId: number },
): Promise<void> {
  const { organizationId } = input
  await deps.db.transaction().execute(async (trx) => {
    await lockAndAuthorize(deps, trx, { actor, permission, organizationId })
    await getChangeableRole(trx, input)
    await deleteMember(trx, input)
  })
}

/** The role of a member who is not the owner. */
async function getChangeableRole(trx: Db, input: { organizationId: number; userId: number }): Promise<InvitedRole> {
  const member = await findMember(trx, input)
  if (member === undefined) throw new AppError('not_found')
  if (member.role === 'owner') {
    throw new AppError('forbidden', 'The owner is changed only by a transfer of the ownership.')
  }
  return member.role
}
