import type { InvitedRole } from '@godwit/contract'
import { recordEvent } from '../audit/record-event.ts'
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
import { listMemberResources } from './rules.ts'

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
  if (deps.config.mail !== undefined) await deps.signInLimits.takeInvitation({ email, organizationId })
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
    await recordEvent(deps, trx, actor, {
      operation: 'org_member.add',
      organizationId,
      resources: listMemberResources({ organizationId, userId: locked.id }),
      details: { role, email: locked.email },
    })
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
    const { email, role: previousRole } = await getChangeableMember(trx, input)
    if (previousRole === role) return
    await requireRoleInPlan(deps, trx, { organizationId, role })
    await updateMemberRole(trx, input)
    await recordEvent(deps, trx, actor, {
      operation: 'org_member.role_update',
      organizationId,
      resources: listMemberResources(input),
      details: { role, previous_role: previousRole, email },
    })
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
    const { email, role: previousRole } = await getChangeableMember(trx, input)
    await deleteMember(trx, input)
    await recordEvent(deps, trx, actor, {
      operation: 'org_member.remove',
      organizationId,
      resources: listMemberResources(input),
      details: { previous_role: previousRole, email },
    })
  })
}

/** A member who is not the owner. */
async function getChangeableMember(
  trx: Db,
  input: { organizationId: number; userId: number },
): Promise<{ email: string; role: InvitedRole }> {
  const member = await findMember(trx, input)
  if (member === undefined) throw new AppError('not_found')
  if (member.role === 'owner') {
    throw new AppError('forbidden', 'The owner is changed only by a transfer of the ownership.')
  }
  return { email: member.email, role: member.role }
}
