import type { Db } from '../db/connection.ts'
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
export async function takeOverAccount(trx: Db, input: { userId: number; now: Date }): Promise<void> {
  if (!(await claimUnverifiedUser(trx, { id: input.userId, at: input.now }))) return
  await deletePersonalServiceAccounts(trx, input)
  await deletePersonalCollaborators(trx, input)
  await updatePersonalInvitationsRevoked(trx, input)
}
