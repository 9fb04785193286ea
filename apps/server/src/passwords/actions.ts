import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { takeOverAccount } from '../identities/take-over-account.ts'
import { generateToken, hashToken } from '../random-tokens.ts'
import { requireLiveSession } from '../sessions/actions.ts'
import { revokeSessionsOfUser } from '../sessions/queries.ts'
import { findUser, findUserByEmail } from '../users/queries.ts'
import { hashPassword, verifyPassword } from './hash-password.ts'
import {
  deleteCredentialsUnderway,
  findAccountByEmail,
  findOpenPasswordReset,
  insertPasswordReset,
  lockPasswordHash,
  updatePasswordHash,
  updateResetAsUsed,
} from './queries.ts'
import { checkNewPassword } from './rules.ts'

const resetLifetimeMs = 3600_000
/** Who has no password to show must have signed in this recently to set one. */
const freshMs = 10 * 60_000

/** Gives an account a password. Everybody who is signed in to it is signed out, except the session that asks. */
export async function setPassword(
  deps: Pick<Deps, 'db' | 'clock'>,
  input: { userId: number; password: string; exceptSessionId?: string },
): Promise<void> {
  const user = await findUser(deps.db, { id: input.userId })
  if (user === undefined) throw new AppError('not_found')
  checkNewPassword(input.password, user)
  // Before the transaction: it takes a while, and would hold a connection.
  const passwordHash = await hashPassword(input.password)
  const { userId, exceptSessionId } = input
  await deps.db.transaction().execute(async (trx) => {
    const now = deps.clock()
    if (exceptSessionId !== undefined) await requireLiveSession(trx, { id: exceptSessionId, userId, now })
    await replacePassword(trx, { ...input, passwordHash, at: now })
  })
}

/** Inside the transaction of a caller that has hashed the password before. */
export async function replacePassword(
  db: Db,
  input: { userId: number; passwordHash: string; exceptSessionId?: string; at: Date },
): Promise<void> {
  const { userId, passwordHash, exceptSessionId, at } = input
  if (!(await updatePasswordHash(db, { userId, passwordHash, at }))) throw new AppError('not_found')
  // Codes first: this waits for one that is being exchanged, whose session the next statement then sees.
  await deleteCredentialsUnderway(db, { userId })
  await revokeSessionsOfUser(db, {
    userId,
    at,
    ...(exceptSessionId === undefined ? {} : { exceptId: exceptSessionId }),
  })
}

/**
 * The account of an e-mail and a password, or undefined. Takes the same time for a wrong password as for an e-mail that
 * has no account. Throws when there were too many tries.
 */
export async function findAccountByPassword(
  deps: Pick<Deps, 'db' | 'signInLimits'>,
  input: { email: string; password: string; address: string },
): Promise<{ userId: number; passwordHash: string; hasSecondFactor: boolean } | undefined> {
  const forgive = await deps.signInLimits.takePassword(input)
  const account = await findAccountByEmail(deps.db, input)
  const isRight = await verifyPassword(account?.password_hash ?? null, input.password)
  if (account === undefined || account.password_hash === null || !isRight) return undefined
  await forgive()
  return {
    userId: account.id,
    passwordHash: account.password_hash,
    hasSecondFactor: account.totp_enabled_at !== null,
  }
}

/**
 * Before a change to how one signs in: whoever holds a session must show the password once more, or, without one, have
 * signed in just now. A stolen session is not enough to keep the account.
 */
export async function requireProofOfOwner(
  deps: Pick<Deps, 'db' | 'clock' | 'signInLimits'>,
  input: { session: { user_id: number; email: string; created_at: Date }; password: string; address: string },
): Promise<void> {
  const { session, password, address } = input
  const user = await findUser(deps.db, { id: session.user_id })
  if (user?.password_hash === null) {
    if (isFresh(session, deps.clock())) return
    throw new AppError('forbidden', 'You signed in a while ago. Sign out, sign in again, and repeat this.')
  }
  const account = await findAccountByPassword(deps, { email: session.email, password, address })
  if (account?.userId !== session.user_id) throw new AppError('invalid_request', 'current_password: is wrong')
}

export function isFresh(session: { created_at: Date }, now: Date): boolean {
  return now.getTime() - session.created_at.getTime() < freshMs
}

/** Has a link mailed with which the person sets a new password. Without an account nothing happens, and nobody is told. */
export async function requestPasswordReset(
  deps: Pick<Deps, 'db' | 'clock' | 'config' | 'jobs' | 'signInLimits'>,
  input: { email: string; address: string },
): Promise<void> {
  await deps.signInLimits.takeMail(input)
  await deps.db.transaction().execute(async (trx) => {
    const user = await findUserByEmail(trx, { email: input.email })
    if (user === undefined) return
    const token = generateToken()
    const now = deps.clock()
    const expiresAt = new Date(now.getTime() + resetLifetimeMs)
    await insertPasswordReset(trx, { hash: hashToken(token), userId: user.id, createdAt: now, expiresAt })
    await deps.jobs.requestMail(trx, {
      to: user.email,
      subject: 'Set a new Godwit password',
      text: describeReset(`${deps.config.publicUrl}/reset-password/${token}`, deps.config.publicUrl),
    })
  })
}

function describeReset(link: string, publicUrl: string): string {
  return `Somebody, probably you, asked for a new password for your Godwit account at ${publicUrl}.

To set one, open this link within an hour. It works once.

${link}

If it was not you, there is nothing to do: your password stays as it is.
`
}

/** The account that a mailed link is for, or undefined when the link is unknown, used or too old. */
export async function findAccountOfReset(deps: Pick<Deps, 'db' | 'clock'>, input: { token: string }) {
  return await findOpenPasswordReset(deps.db, { hash: hashToken(input.token), now: deps.clock() })
}

/**
 * Sets the password that a mailed link allows, once, and ends every session. The link shows whose mailbox it is: what
 * somebody else set up in an account that nobody had vouched for is removed.
 */
export async function resetPassword(
  deps: Pick<Deps, 'db' | 'clock'>,
  input: { token: string; password: string },
): Promise<void> {
  const account = await findAccountOfReset(deps, input)
  if (account === undefined) throw new AppError('not_found', 'This link was used already, or is too old.')
  checkNewPassword(input.password, account)
  const passwordHash = await hashPassword(input.password)
  const userId = account.user_id
  await deps.db.transaction().execute(async (trx) => {
    const now = deps.clock()
    // Before the link, as where a password is changed: the other order could wait for it forever.
    await lockPasswordHash(trx, { userId })
    if (!(await updateResetAsUsed(trx, { hash: hashToken(input.token), at: now }))) {
      throw new AppError('not_found', 'This link was used already, or is too old.')
    }
    await takeOverAccount(deps, trx, { userId, email: account.email })
    await replacePassword(trx, { userId, passwordHash, at: now })
  })
}
