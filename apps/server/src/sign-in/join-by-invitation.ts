import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { acceptInvitationByToken } from '../invitations/answer-actions.ts'
import { checkNewPassword } from '../passwords/rules.ts'
import { createAccount } from '../users/actions.ts'

const maxNameLength = 128

/**
 * Creates the account that an invitation is for, and accepts: both or neither. The e-mail counts as shown only when the
 * link was mailed, which the acceptance judges.
 */
export async function joinByInvitation(
  deps: Deps,
  input: { token: string; email: string; displayName: string; password: string },
): Promise<{ userId: number }> {
  const { token, email, displayName, password } = input
  if ([...displayName].length > maxNameLength) {
    throw new AppError('invalid_request', `display_name: must have at most ${maxNameLength} characters`)
  }
  checkNewPassword(password, { email })
  return await deps.db.transaction().execute(async (trx) => {
    const account = await createAccount(trx, {
      email,
      displayName: displayName === '' ? null : displayName,
      jwtIssuer: deps.config.publicUrl,
      password,
      isEmailVerified: false,
    })
    if (account === undefined) {
      throw new AppError('invalid_request', 'email: has an account already. Sign in to answer.')
    }
    const userId = account.user.id
    await acceptInvitationByToken(deps, { token, userId }, trx)
    return { userId }
  })
}
