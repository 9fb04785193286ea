import type { IncomingHttpHeaders } from 'node:http'
import { fastifyCookie } from '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { lockPasswordHash } from '../passwords/queries.ts'
import { hashToken } from '../random-tokens.ts'
import { type SignIn, startBrowserSession } from '../sessions/actions.ts'
import { findLiveSessionByCookie, revokeSession } from '../sessions/queries.ts'

export type BrowserSession = NonNullable<Awaited<ReturnType<typeof findLiveSessionByCookie>>>

/** A request of Fastify's or of Node's. */
type WithHeaders = { headers: IncomingHttpHeaders }

const sessions = new WeakMap<WithHeaders, Promise<BrowserSession | undefined>>()

/** The session of the browser that asks, with the person's e-mail. undefined: nobody is signed in. Read once a request. */
export async function readBrowserSession(deps: Deps, request: WithHeaders): Promise<BrowserSession | undefined> {
  const known = sessions.get(request)
  if (known !== undefined) return await known
  const session = findSession(deps, request)
  sessions.set(request, session)
  return await session
}

async function findSession(deps: Deps, request: WithHeaders): Promise<BrowserSession | undefined> {
  const cookie = readCookie(deps, request, 'session')
  if (cookie === undefined || cookie === '') return undefined
  return await findLiveSessionByCookie(deps.db, { cookieHash: hashToken(cookie), now: deps.clock() })
}

/**
 * Signs a person in to this browser. Whatever cookie it presented is replaced by a new one, and the session of that one
 * ends: a cookie that somebody planted is worth nothing afterwards. `passwordHash`: of the password that was shown. When
 * it was replaced meanwhile, nobody is signed in.
 */
export async function signInBrowser(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  signIn: SignIn & { passwordHash?: string },
): Promise<void> {
  const { passwordHash, ...how } = signIn
  const previous = await readBrowserSession(deps, request)
  const now = deps.clock()
  const started = await deps.db.transaction().execute(async (trx) => {
    const current = await lockPasswordHash(trx, { userId: how.userId })
    if (passwordHash !== undefined && current !== passwordHash) throw new AppError('unauthenticated', 'Sign in again.')
    if (previous !== undefined) await revokeSession(trx, { id: previous.id, at: now })
    return await startBrowserSession(trx, { ...how, ...readOrigin(request), now })
  })
  setSessionCookie(deps, reply, started)
}

/** What is shown of a session to its owner. */
export function readOrigin(request: FastifyRequest): { userAgent: string | null; address: string } {
  const userAgent = request.headers['user-agent']?.replaceAll('\0', '').slice(0, 256)
  return { userAgent: userAgent ?? null, address: request.ip }
}

export function setSessionCookie(deps: Deps, reply: FastifyReply, session: { cookie: string; expiresAt: Date }): void {
  setCookie(deps, reply, { name: 'session', value: session.cookie, expiresAt: session.expiresAt })
}

export function clearSessionCookie(deps: Deps, reply: FastifyReply): void {
  clearCookie(deps, reply, 'session')
}

type CookieName = 'session' | 'visitor' | 'pending'

export function readCookie(deps: Deps, request: WithHeaders, name: CookieName): string | undefined {
  return fastifyCookie.parse(request.headers.cookie ?? '')[nameCookie(deps, name)]
}

/** `__Host-` keeps other hosts of the same domain from setting it; browsers accept it on https only. */
function nameCookie(deps: Pick<Deps, 'config'>, name: CookieName): string {
  return `${isSecure(deps) ? '__Host-' : ''}godwit_${name}`
}

/** `expiresAt` undefined: until the browser is closed. */
export function setCookie(
  deps: Deps,
  reply: FastifyReply,
  cookie: { name: CookieName; value: string; expiresAt?: Date },
): void {
  const { name, value, expiresAt } = cookie
  reply.setCookie(nameCookie(deps, name), value, {
    ...cookieOptions(deps),
    ...(expiresAt === undefined ? {} : { expires: expiresAt }),
  })
}

export function clearCookie(deps: Deps, reply: FastifyReply, name: CookieName): void {
  reply.clearCookie(nameCookie(deps, name), cookieOptions(deps))
}

function cookieOptions(deps: Pick<Deps, 'config'>) {
  return { path: '/', httpOnly: true, secure: isSecure(deps), sameSite: 'lax' } as const
}

function isSecure(deps: Pick<Deps, 'config'>): boolean {
  return deps.config.publicUrl.startsWith('https:')
}
