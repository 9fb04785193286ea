import type { AppCollaboratorRole } from '@godwit/contract'
import { lockAppAgainstDeletion } from '../apps/queries.ts'
import { type Doer, recordAppEvent, recordEvent } from '../audit/record-event.ts'
import { findCollaborator, insertCollaborator } from '../collaborators/queries.ts'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { type Actor, requirePerson } from '../http/actor.ts'
import { requireAllowedDomain } from '../organizations/allowed-domains.ts'
import { findMember, insertMember, lockOrganization } from '../organizations/queries.ts'
import { listMemberResources } from '../organizations/rules.ts'
import { hashToken } from '../random-tokens.ts'
import { findUser, lockUserAgainstDeletion, updateEmailVerified } from '../users/queries.ts'
import {
  findInvitationIdByToken,
  findInvitationPlace,
  listInvitationsByEmail,
  lockInvitation,
  updateInvitationStatus,
} from './queries.ts'
import { recordInvitationEvent } from './record-invitation-event.ts'
import { judgeAnswer } from './rules.ts'

type Answer = 'accept' | 'decline'
type Invitation = NonNullable<Awaited<ReturnType<typeof lockInvitation>>>
type User = NonNullable<Awaited<ReturnType<typeof lockUserAgainstDeletion>>>

/** The invitations to the caller's e-mail; none before it is known that the e-mail is the caller's. */
export async function listReceivedInvitations(deps: Deps, actor: Actor) {
  const user = await findUser(deps.db, { id: requirePerson(actor).userId })
  if (user === undefined) throw new AppError('not_found')
  if (user.email_verified_at === null) return []
  return await listInvitationsByEmail(deps.db, { email: user.email, now: deps.clock() })
}

export async function acceptInvitation(deps: Deps, actor: Actor, input: { invitationId: number }): Promise<void> {
  await answerInvitation(deps, actor, 'accept', { ...input, userId: requirePerson(actor).userId })
}

export async function declineInvitation(deps: Deps, actor: Actor, input: { invitationId: number }): Promise<void> {
  await answerInvitation(deps, actor, 'decline', { ...input, userId: requirePerson(actor).userId })
}

/**
 * The link alone does not let in: the account must have the e-mail that was invited. `trx`: the transaction that makes
 * the account.
 */
export async function acceptInvitationByToken(
  deps: Deps,
  doer: Doer,
  input: { token: string; userId: number },
  trx?: Db,
): Promise<void> {
  const invitationId = await getInvitationId(trx ?? deps.db, input.token)
  await answerInvitation(deps, doer, 'accept', { ...input, invitationId }, trx)
}

export async function declineInvitationByToken(
  deps: Deps,
  doer: Doer,
  input: { token: string; userId: number },
): Promise<void> {
  const invitationId = await getInvitationId(deps.db, input.token)
  await answerInvitation(deps, doer, 'decline', { ...input, invitationId })
}

async function getInvitationId(db: Db, token: string): Promise<number> {
  const id = await findInvitationIdByToken(db, { token })
  if (id === undefined) throw new AppError('not_found')
  return id
}

async function answerInvitation(
  deps: Deps,
  doer: Doer,
  answer: Answer,
  input: { invitationId: number; userId: number; token?: string },
  within?: Db,
): Promise<void> {
  const { userId, token } = input
  const answerIn = async (trx: Db) => {
    const { invitation, user } = await lockForAnswer(trx, input)
    requireAddressee(invitation, user, token)
    const judgement = judgeAnswer(invitation, { answer, userId, now: deps.clock() })
    if (judgement === 'gone') throw new AppError('not_found')
    if (judgement === 'repeat') return
    if (answer === 'decline') {
      await updateInvitationStatus(trx, { id: invitation.id, status: 'declined' })
      return await recordInvitationEvent(deps, trx, doer, { operation: 'invitation.decline', invitation })
    }
    await requireAllowedDomain(trx, { organizationId: invitation.organization_id, email: user.email })
    await updateInvitationStatus(trx, { id: invitation.id, status: 'accepted', userId })
    if (token !== undefined && invitation.is_mailed) await updateEmailVerified(trx, { id: userId, at: deps.clock() })
    await recordInvitationEvent(deps, trx, doer, { operation: 'invitation.accept', invitation })
    await letIn(deps, trx, doer, { invitation, user })
  }
  if (within === undefined) await deps.db.transaction().execute(answerIn)
  else await answerIn(within)
}

/** Locks the organization, the app, the account and the invitation: in this order everywhere. */
async function lockForAnswer(
  trx: Db,
  input: { invitationId: number; userId: number },
): Promise<{ invitation: Invitation; user: User }> {
  const id = input.invitationId
  for (;;) {
    const place = await findInvitationPlace(trx, { id })
    if (place === undefined) throw new AppError('not_found')
    const { organization_id: organizationId, app_id: appId } = place
    if ((await lockOrganization(trx, { organizationId })) === undefined) throw new AppError('not_found')
    if (appId !== null) await lockAppAgainstDeletion(trx, { appId, organizationId })
    const user = await lockUserAgainstDeletion(trx, { id: input.userId })
    const invitation = await lockInvitation(trx, { id })
    if (user === undefined || invitation === undefined) throw new AppError('not_found')
    // Otherwise it has moved with its app while this waited.
    if (invitation.organization_id === organizationId) return { invitation, user }
  }
}

/** An invitation to somebody else is hidden from who knows its number only; who has its link sees it anyway. */
function requireAddressee(invitation: Invitation, user: User, token: string | undefined): void {
  const isSameEmail = invitation.email.toLowerCase() === user.email.toLowerCase()
  if (token === undefined) {
    if (!isSameEmail || user.email_verified_at === null) throw new AppError('not_found')
    return
  }
  // Renewed between finding and locking: the link no longer works.
  if (!invitation.token_hash.equals(hashToken(token))) throw new AppError('not_found')
  if (!isSameEmail) throw new AppError('forbidden', 'The invitation is to another e-mail.')
}

/** Whoever is in already keeps the role they have, and has not been added. */
async function letIn(deps: Deps, trx: Db, doer: Doer, input: { invitation: Invitation; user: User }): Promise<void> {
  const { organization_id: organizationId, app_id: appId, role } = input.invitation
  const { id: userId, email } = input.user
  const details = { role, email }
  if (appId !== null) {
    if ((await findCollaborator(trx, { appId, userId })) !== undefined) return
    await insertCollaborator(trx, { appId, userId, role: role as AppCollaboratorRole })
    return await recordAppEvent(deps, trx, doer, {
      operation: 'app_collaborator.add',
      appId,
      resources: [
        { type: 'user', uid: userId },
        { type: 'app', uid: appId },
      ],
      details,
    })
  }
  if ((await findMember(trx, { organizationId, userId })) !== undefined) return
  await insertMember(trx, { organizationId, userId, role })
  await recordEvent(deps, trx, doer, {
    operation: 'org_member.add',
    organizationId,
    resources: listMemberResources({ organizationId, userId }),
    details,
  })
}
