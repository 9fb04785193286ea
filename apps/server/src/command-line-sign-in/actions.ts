import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { OAuthError } from '../oauth-error.ts'
import { generateToken, hashToken } from '../random-tokens.ts'
import { requireLiveSession, type SessionOrigin, type SignIn, startClientSession } from '../sessions/actions.ts'
import { revokeSession, updateSessionExpiry } from '../sessions/queries.ts'
import { lockUserAgainstDeletion } from '../users/queries.ts'
import {
  findUserIdOfCode,
  insertCode,
  insertRefreshToken,
  lockCode,
  lockRefreshToken,
  updateCodeUsed,
  updateRefreshTokenUsed,
} from './queries.ts'
import { codeLifetimeMs, judgeRefresh, sessionLifetimeMs } from './rules.ts'

/** What the client is told (RFC 6749, 5.1). `expires_in` in seconds. */
export type TokenAnswer = { access_token: string; refresh_token: string; token_type: 'Bearer'; expires_in: number }

type Holder = SignIn & { email: string; sessionId: string; signedInAt: Date }

/** A code for the client that listens at `target`, as long as the browser's session lives. */
export async function issueCode(deps: Deps, input: SignIn & { sessionId: string; target: URL }): Promise<string> {
  const { userId, sessionId, issuer, isMfa, target } = input
  const code = generateToken()
  const now = deps.clock()
  await deps.db.transaction().execute(async (trx) => {
    await requireLiveSession(trx, { id: sessionId, userId, now })
    await insertCode(trx, {
      hash: hashToken(code),
      userId,
      target: target.href,
      issuer,
      isMfa,
      createdAt: now,
      expiresAt: new Date(now.getTime() + codeLifetimeMs),
    })
  })
  return code
}

/**
 * Exchanges a code for tokens, once. A second attempt ends the session of the first (RFC 6749, 4.1.2): one of the two
 * was not the client.
 */
export async function exchangeCode(
  deps: Deps,
  input: { code: string; redirectUri: string | undefined } & SessionOrigin,
): Promise<TokenAnswer> {
  const now = deps.clock()
  const hash = hashToken(input.code)
  const outcome = await deps.db.transaction().execute(async (trx) => {
    // The account before the code, as where an account is deleted with its codes: the other order could wait for it forever.
    const userId = await findUserIdOfCode(trx, { hash })
    const user = userId === undefined ? undefined : await lockUserAgainstDeletion(trx, { id: userId })
    const code = await lockCode(trx, { hash })
    if (code === undefined || user === undefined) return 'unknown'
    if (code.used_at !== null) {
      if (code.session_id !== null) await revokeSession(trx, { id: code.session_id, at: now })
      return 'used'
    }
    if (code.expires_at <= now) return 'expired'
    if (input.redirectUri !== undefined && input.redirectUri !== code.target) return 'meant for another target'
    const signIn = { userId: user.id, issuer: code.issuer, isMfa: code.is_mfa }
    const session = await startClientSession(trx, {
      ...signIn,
      userAgent: input.userAgent,
      address: input.address,
      client: 'command_line',
      now,
      lifetimeMs: sessionLifetimeMs,
    })
    await updateCodeUsed(trx, { hash, sessionId: session.id, at: now })
    const holder = { ...signIn, email: user.email, sessionId: session.id, signedInAt: now }
    return { holder, refreshToken: await createRefreshToken(trx, holder, now) }
  })
  if (typeof outcome !== 'string') return await answerWithTokens(deps, outcome)
  deps.log.warn({ reason: outcome, address: input.address }, 'a sign-in code was refused')
  throw new OAuthError('invalid_grant', `The code is ${outcome}.`)
}

/**
 * Exchanges a refresh token for new tokens. One that was exchanged long ago is a copy in other hands: its session ends,
 * for the thief and for the client alike.
 */
export async function refreshTokens(
  deps: Deps,
  input: { refreshToken: string; address: string | null },
): Promise<TokenAnswer> {
  const now = deps.clock()
  const hash = hashToken(input.refreshToken)
  const outcome = await deps.db.transaction().execute(async (trx) => {
    const token = await lockRefreshToken(trx, { hash })
    if (token === undefined) return 'unknown'
    if (token.revoked_at !== null) return 'of a session that has ended'
    if (token.expires_at <= now) return 'expired'
    if (judgeRefresh({ usedAt: token.used_at }, now) === 'reused') {
      await revokeSession(trx, { id: token.session_id, at: now })
      return 'used; its session has been ended'
    }
    await updateRefreshTokenUsed(trx, { hash, at: now })
    await updateSessionExpiry(trx, { id: token.session_id, expiresAt: new Date(now.getTime() + sessionLifetimeMs) })
    const holder = {
      userId: token.user_id,
      issuer: token.issuer,
      isMfa: token.is_mfa,
      email: token.email,
      sessionId: token.session_id,
      signedInAt: token.session_created_at,
    }
    return { holder, refreshToken: await createRefreshToken(trx, holder, now) }
  })
  if (typeof outcome !== 'string') return await answerWithTokens(deps, outcome)
  deps.log.warn({ reason: outcome, address: input.address }, 'a refresh token was refused')
  throw new OAuthError('invalid_grant', `The refresh token is ${outcome}.`)
}

/** Ends the session of a refresh token. What is unknown has ended already. */
export async function signOutCommandLine(deps: Deps, input: { refreshToken: string }): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    const token = await lockRefreshToken(trx, { hash: hashToken(input.refreshToken) })
    if (token !== undefined) await revokeSession(trx, { id: token.session_id, at: deps.clock() })
  })
}

async function createRefreshToken(db: Db, holder: Holder, now: Date): Promise<string> {
  const refreshToken = generateToken()
  await insertRefreshToken(db, {
    hash: hashToken(refreshToken),
    sessionId: holder.sessionId,
    createdAt: now,
    expiresAt: new Date(now.getTime() + sessionLifetimeMs),
  })
  return refreshToken
}

/** After the commit: signing may have to read the keys, and a transaction must not wait for a second connection. */
async function answerWithTokens(deps: Deps, input: { holder: Holder; refreshToken: string }): Promise<TokenAnswer> {
  const { holder, refreshToken } = input
  const { token, expiresInSeconds } = await deps.accessTokens.sign({
    sub: String(holder.userId),
    sid: holder.sessionId,
    email: holder.email,
    idp: holder.issuer,
    ...(holder.isMfa === null ? {} : { is_mfa: holder.isMfa }),
    auth_time: Math.floor(holder.signedInAt.getTime() / 1000),
  })
  return { access_token: token, refresh_token: refreshToken, token_type: 'Bearer', expires_in: expiresInSeconds }
}
