import { randomUUID } from 'node:crypto'
import type { Db } from '../db/connection.ts'
import { AppError } from '../errors.ts'
import { lockPasswordHash } from '../passwords/queries.ts'
import { generateToken, hashToken } from '../random-tokens.ts'
import { findLiveSession, insertSession } from './queries.ts'

/** How somebody showed who they are. */
export type SignIn = {
  userId: number
  /** Who vouched: an identity provider's issuer, or the service's own (`GODWIT_PUBLIC_URL`) for a password. */
  issuer: string
  /** Whether a second factor was used; null when the identity provider did not say. */
  isMfa: boolean | null
}

export type SessionOrigin = { userAgent: string | null; address: string | null }

/** A browser stays signed in for this long. */
const browserLifetimeMs = 12 * 3600_000

/** Starts a session of a browser and returns what its cookie holds. A new secret each time: nobody can plant one before. */
export async function startBrowserSession(
  db: Db,
  input: SignIn & SessionOrigin & { now: Date },
): Promise<{ id: string; cookie: string; expiresAt: Date }> {
  const cookie = generateToken()
  const expiresAt = new Date(input.now.getTime() + browserLifetimeMs)
  const id = randomUUID()
  await insertSession(db, {
    ...input,
    id,
    client: 'browser',
    cookieHash: hashToken(cookie),
    createdAt: input.now,
    expiresAt,
  })
  return { id, cookie, expiresAt }
}

/** Starts a session of a client that holds refresh tokens. It ends `lifetimeMs` after its last refresh. */
export async function startClientSession(
  db: Db,
  input: SignIn & SessionOrigin & { id?: string; client: string; now: Date; lifetimeMs: number },
): Promise<{ id: string; expiresAt: Date }> {
  const id = input.id ?? randomUUID()
  const expiresAt = new Date(input.now.getTime() + input.lifetimeMs)
  await insertSession(db, { ...input, id, cookieHash: null, createdAt: input.now, expiresAt })
  return { id, expiresAt }
}

/**
 * Refuses what a session that has ended meanwhile had begun. Waits for a change of password, which ends sessions, and keeps
 * the next one waiting until the transaction ends.
 */
export async function requireLiveSession(trx: Db, input: { id: string; userId: number; now: Date }): Promise<void> {
  await lockPasswordHash(trx, { userId: input.userId })
  const session = await findLiveSession(trx, input)
  if (session === undefined) throw new AppError('unauthenticated', 'You have been signed out. Sign in again.')
}
