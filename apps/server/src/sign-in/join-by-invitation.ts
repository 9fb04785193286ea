import type { AuditActor } from '../audit/describe-actor.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { RequestSource } from '../http/actor.ts'
import { acceptInvitationByToken } from '../invitations/answer-actions.ts'
import { hashPassword } from '../passwords/hash-password.ts'
import { checkNewPassword } from '../passwords/rules.ts'
import { createAccount } from '../users/actions.ts'

const maxNameLength = 128

/**
 * Creates the account that an invitation is for, and accepts: both or neither. The e-mail counts as shown only when the
 * link was mailed, which the acceptance judges.
 */
export async function joinByInvitation(
  deps: Deps,
  input: { token: string; email: string; displayName: string; password: string; source: RequestSource },
): Promise<{ userId: number }> {
  const { token, email, displayName, password, source } = input
  if ([...displayName].length > maxNameLength) {
    throw new AppError('invalid_request', `display_name: must have at most ${maxNameLength} characters`)
  }
  checkNewPassword(password, { email })
  const passwordHash = await hashPassword(password)
  return await deps.db.transaction().execute(async (trx) => {
    const account = await createAccount(trx, {
      email,
      displayName: displayName === '' ? null : displayName,
      jwtIssuer: deps.config.publicUrl,
      passwordHash,
      isEmailVerified: false,
    })
    if (account === undefined) {
      throw new AppError('invalid_request', 'email: has an account already. Sign in to answer.')
    }
    const userId = account.user.id
    const by = describeNewAccount(account.user)
    await acceptInvitationByToken(deps, { by, from: source }, { token, userId }, trx)
    return { userId }
  })
}

/** Nobody is signed in before the account exists. */
function describeNewAccount(user: { id: number; email: string; display_name: string | null }): AuditActor {
  const uid = String(user.id)
  const name = user.display_name ?? user.email
  return {
    actorId: uid,
    actor: { user: { uid, name, email_addr: user.email, type_id: 1 } },
    unmapped: { actor_source: 'none' },
  }
}
