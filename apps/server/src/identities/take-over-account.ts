import type { AuditActor } from '../audit/describe-actor.ts'
import { recordAppEvent, recordEvent } from '../audit/record-event.ts'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { unknownSource } from '../http/actor.ts'
import { claimUnverifiedUser } from '../users/queries.ts'
import {
  deletePersonalCollaborators,
  deletePersonalServiceAccounts,
  updatePersonalInvitationsRevoked,
} from './queries.ts'

/**
 * For whoever has shown that the e-mail of an account is theirs. Somebody who held the account without having shown that
 * loses it: otherwise they could prepare one for an address and wait for its owner to join. That includes the ways in
 * that they may have left open besides the account's own: machines, collaborators and invitations of its personal
 * organization. Nothing happens to an account whose e-mail was shown before.
 */
export async function takeOverAccount(
  deps: Pick<Deps, 'clock'>,
  trx: Db,
  input: { userId: number; email: string },
): Promise<void> {
  const { userId, email } = input
  if (!(await claimUnverifiedUser(trx, { id: userId, at: deps.clock() }))) return
  const doer = { by: describeClaimant(userId, email), from: unknownSource }
  for (const account of await deletePersonalServiceAccounts(trx, input)) {
    await recordEvent(deps, trx, doer, {
      operation: 'service_account.delete',
      organizationId: account.organization_id,
      resources: [{ type: 'service_account', uid: account.id }],
      details: { name: account.name, previous_role: account.role },
    })
  }
  for (const collaborator of await deletePersonalCollaborators(trx, input)) {
    await recordAppEvent(deps, trx, doer, {
      operation: 'app_collaborator.remove',
      appId: collaborator.app_id,
      resources: [{ type: 'user', uid: collaborator.user_id }],
      details: { previous_role: collaborator.role },
    })
  }
  for (const invitation of await updatePersonalInvitationsRevoked(trx, input)) {
    await recordEvent(deps, trx, doer, {
      operation: 'invitation.revoke',
      organizationId: invitation.organization_id,
      resources: [{ type: 'invitation', uid: invitation.id }],
      details: { email: invitation.email, role: invitation.role },
    })
  }
}

/** The person who showed that the e-mail is theirs. No session of theirs exists yet. */
function describeClaimant(userId: number, email: string): AuditActor {
  const uid = String(userId)
  return {
    actorId: uid,
    actor: { user: { uid, name: email, email_addr: email, type_id: 1 } },
    unmapped: { actor_source: 'none' },
  }
}
