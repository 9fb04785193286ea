import type { InvitedRole } from '@godwit/contract'
import { lockAppAgainstDeletion } from '../apps/queries.ts'
import { findCollaborator } from '../collaborators/queries.ts'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
import { requireAllowedDomain } from '../organizations/allowed-domains.ts'
import { lockAndAuthorize } from '../organizations/lock-and-authorize.ts'
import { findMember } from '../organizations/queries.ts'
import { requireOrganizationFeature, requireRoleInPlan } from '../plans/actions.ts'
import { generateToken } from '../random-tokens.ts'
import { findUserByEmail } from '../users/queries.ts'
import { findInvitation, lockInvitation, updateInvitationStatus, upsertInvitation } from './queries.ts'
import { recordInvitationEvent } from './record-invitation-event.ts'
import { nextExpiry, writeInvitationMail } from './rules.ts'

const permission = 'members.manage'

type Target = { organization: { id: number; organization_type: 'personal' | 'team' }; email: string; role: InvitedRole }

/** Invites to the organization, or to one of its apps. */
export async function invite(
  deps: Deps,
  actor: Actor,
  input: { organizationId: number; email: string; role: InvitedRole; appId: string | undefined },
) {
  const { organizationId, appId, email, role } = input
  if (deps.config.mail !== undefined) await deps.signInLimits.takeInvitation({ email, organizationId })
  return await deps.db.transaction().execute(async (trx) => {
    const organization = await lockAndAuthorize(deps, trx, { actor, permission, organizationId })
    const target = { organization, email, role }
    if (appId !== undefined) return await inviteToApp(deps, trx, { actor, ...target, appId })
    const user = await findUserByEmail(trx, { email })
    const member = user && (await findMember(trx, { organizationId, userId: user.id }))
    if (member !== undefined) throw new AppError('already_member', `email: is a member, as ${member.role}`)
    return await inviteToOrganization(deps, trx, { actor, ...target })
  })
}

/** In the transaction of a caller that holds the organization's lock and knows that nobody with the e-mail is a member. */
export async function inviteToOrganization(deps: Deps, trx: Db, input: Target & { actor: Actor }) {
  const { organization, email, role } = input
  const organizationId = organization.id
  if (organization.organization_type === 'personal') throw new AppError('organization_is_personal')
  await requireOrganizationFeature(deps, trx, { organizationId, feature: 'team_organizations' })
  await requireRoleInPlan(deps, trx, { organizationId, role })
  await requireAllowedDomain(trx, { organizationId, email })
  return await issueInvitation(deps, trx, { ...input, appId: null })
}

async function inviteToApp(deps: Deps, trx: Db, input: Target & { actor: Actor; appId: string }) {
  const { appId, email } = input
  const organizationId = input.organization.id
  if (!(await lockAppAgainstDeletion(trx, { appId, organizationId }))) throw new AppError('not_found')
  const user = await findUserByEmail(trx, { email })
  const collaborator = user && (await findCollaborator(trx, { appId, userId: user.id }))
  if (collaborator !== undefined) throw new AppError('already_member', `email: is a collaborator, ${collaborator.role}`)
  await requireOrganizationFeature(deps, trx, { organizationId, feature: 'collaborators' })
  await requireAllowedDomain(trx, { organizationId, email })
  return await issueInvitation(deps, trx, input)
}

/** The link goes by mail when the server sends mail, and only then proves whose the e-mail is; otherwise the answer has it. */
async function issueInvitation(deps: Deps, trx: Db, input: Target & { actor: Actor; appId: string | null }) {
  const { actor, appId, email, role } = input
  const now = deps.clock()
  const token = generateToken()
  const isMailed = deps.config.mail !== undefined
  const id = await upsertInvitation(trx, {
    organizationId: input.organization.id,
    appId,
    email,
    role,
    token,
    isMailed,
    invitedByUserId: actor.kind === 'person' ? actor.userId : null,
    createdAt: now,
    expiresAt: nextExpiry(now),
  })
  const invitation = await findInvitation(trx, { id })
  const url = `${deps.config.publicUrl}/invitations/${token}`
  // Also when it is renewed: a new link has been handed out.
  await recordInvitationEvent(deps, trx, actor, { operation: 'invitation.create', invitation })
  if (!isMailed) return { invitation, url }
  const mail = writeInvitationMail({
    email,
    invitedBy: invitation.invited_by ?? undefined,
    organizationName: invitation.organization_name,
    appName: invitation.app_name ?? undefined,
    role,
    url,
    expiresAt: invitation.expires_at,
  })
  await deps.jobs.requestMail(trx, mail)
  return { invitation, url: undefined }
}

/** Its link no longer works from then on. */
export async function revokeInvitation(
  deps: Deps,
  actor: Actor,
  input: { organizationId: number; invitationId: number },
): Promise<void> {
  const { organizationId, invitationId } = input
  await deps.db.transaction().execute(async (trx) => {
    await lockAndAuthorize(deps, trx, { actor, permission, organizationId })
    const invitation = await lockInvitation(trx, { id: invitationId })
    if (invitation?.organization_id !== organizationId) throw new AppError('not_found')
    if (invitation.status === 'revoked') return
    if (invitation.status !== 'pending') throw new AppError('not_found', 'The invitation has been answered.')
    await updateInvitationStatus(trx, { id: invitationId, status: 'revoked' })
    await recordInvitationEvent(deps, trx, actor, { operation: 'invitation.revoke', invitation })
  })
}
