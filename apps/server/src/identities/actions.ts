import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { hasPendingInvitation } from '../invitations/queries.ts'
import { createAccount } from '../users/actions.ts'
import { findUserByIdentity, insertIdentity, lockIdentity, lockUserByEmail } from './queries.ts'
import { canSignUp } from './rules.ts'
import { takeOverAccount } from './take-over-account.ts'

/** Somebody as an identity provider describes them. */
export type Identity = {
  issuer: string
  subject: string
  /** undefined unless the provider says that the e-mail is theirs. */
  verifiedEmail: string | undefined
}

/** What an identity signs in to. */
export type LinkedAccount = { id: number; email: string; display_name: string | null }

/**
 * The account that an identity signs in to: the one it is linked to, or else the one with its verified e-mail, which is
 * linked from then on. undefined when there is none yet.
 */
export async function findOrLinkAccount(deps: Deps, identity: Identity): Promise<LinkedAccount | undefined> {
  const linked = await findUserByIdentity(deps.db, identity)
  if (linked !== undefined || identity.verifiedEmail === undefined) return linked
  return await deps.db.transaction().execute(async (trx) => await linkByEmail(deps, trx, identity))
}

/** Creates the account of an identity, or answers the one that it has. Refuses whom the operator does not let in. */
export async function signUpWithIdentity(
  deps: Deps,
  identity: Identity,
  input: { displayName: string | null },
): Promise<LinkedAccount> {
  return await deps.db.transaction().execute(async (trx) => {
    const existing = await linkByEmail(deps, trx, identity)
    if (existing !== undefined) return existing
    const email = identity.verifiedEmail
    if (email === undefined) {
      throw refuse(deps, identity, 'The identity provider does not say that the e-mail is yours.')
    }
    const isInvited = await hasPendingInvitation(trx, { email, now: deps.clock() })
    if (!canSignUp(deps.config.signUp, { email, isInvited })) {
      throw refuse(deps, identity, 'Only people who were invited can have an account here.')
    }
    const { issuer, subject } = identity
    const { displayName } = input
    const created = await createAccount(trx, { email, displayName, jwtIssuer: issuer, isEmailVerified: true })
    if (created !== undefined) {
      await insertIdentity(trx, { userId: created.user.id, issuer, subject, email })
      return toLinkedAccount(created.user)
    }
    // Somebody else with the same e-mail was faster, and has committed: creating waited for that.
    const account = await linkByEmail(deps, trx, identity)
    if (account === undefined) throw new AppError('unavailable')
    return account
  })
}

function refuse(deps: Deps, identity: Identity, reason: string): AppError {
  deps.log.warn({ issuer: identity.issuer, subject: identity.subject, reason }, 'a sign-up was refused')
  return new AppError('forbidden', reason)
}

/** Locks the identity, then the account: in this order everywhere. */
async function linkByEmail(deps: Deps, trx: Db, identity: Identity): Promise<LinkedAccount | undefined> {
  await lockIdentity(trx, identity)
  const linked = await findUserByIdentity(trx, identity)
  const { issuer, subject, verifiedEmail } = identity
  if (linked !== undefined || verifiedEmail === undefined) return linked
  const user = await lockUserByEmail(trx, { email: verifiedEmail })
  if (user === undefined) return undefined
  await takeOverAccount(deps, trx, { userId: user.id, email: user.email })
  await insertIdentity(trx, { userId: user.id, issuer, subject, email: verifiedEmail })
  return toLinkedAccount(user)
}

function toLinkedAccount({ id, email, display_name }: LinkedAccount): LinkedAccount {
  return { id, email, display_name }
}
