import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Deps } from '../deps.ts'
import { hashToken } from '../random-tokens.ts'
import { findUser } from '../users/queries.ts'
import { clearCookie, readCookie, setCookie } from './browser-session.ts'

const lifetimeMs = 5 * 60_000

const PendingSignIn = z.object({
  id: z.string(),
  userId: z.number().int(),
  returnTo: z.string(),
  /** Of the password that was shown: a change of password ends what waits for a code. */
  password: z.string(),
  /** Milliseconds since the Unix epoch. */
  expiresAt: z.number(),
})
export type PendingSignIn = z.output<typeof PendingSignIn> & { passwordHash: string }

/** Remembers in the browser, signed, that the password was right and the code is to come. It opens nothing by itself. */
export function rememberPendingSignIn(
  deps: Deps,
  reply: FastifyReply,
  input: { userId: number; passwordHash: string; returnTo: string },
): void {
  const expiresAt = new Date(deps.clock().getTime() + lifetimeMs)
  const pending: z.input<typeof PendingSignIn> = {
    id: randomUUID(),
    userId: input.userId,
    returnTo: input.returnTo,
    password: fingerprint(input.passwordHash),
    expiresAt: expiresAt.getTime(),
  }
  const payload = Buffer.from(JSON.stringify(pending)).toString('base64url')
  const value = `${payload}.${deps.pageSigner.sign('pending-sign-in', payload)}`
  setCookie(deps, reply, { name: 'pending', value, expiresAt })
}

/** undefined when there is none, it was altered, or it has expired. */
export async function readPendingSignIn(deps: Deps, request: FastifyRequest): Promise<PendingSignIn | undefined> {
  const [payload = '', signature = ''] = (readCookie(deps, request, 'pending') ?? '').split('.')
  if (!deps.pageSigner.verify('pending-sign-in', payload, signature)) return undefined
  const pending = PendingSignIn.parse(JSON.parse(Buffer.from(payload, 'base64url').toString()))
  if (pending.expiresAt <= deps.clock().getTime()) return undefined
  const user = await findUser(deps.db, { id: pending.userId })
  const passwordHash = user?.password_hash ?? undefined
  if (passwordHash === undefined || fingerprint(passwordHash) !== pending.password) return undefined
  return { ...pending, passwordHash }
}

export function forgetPendingSignIn(deps: Deps, reply: FastifyReply): void {
  clearCookie(deps, reply, 'pending')
}

function fingerprint(passwordHash: string): string {
  return hashToken(passwordHash).toString('base64url').slice(0, 22)
}
