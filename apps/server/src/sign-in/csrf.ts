import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { generateToken } from '../random-tokens.ts'
import { readBrowserSession, readCookie, setCookie } from './browser-session.ts'
import { formTokenField } from './page.ts'

const visitorPattern = /^[\w-]{43}$/

/**
 * The proof that a form came from here, for a hidden field: bound to the session, or before sign-in to a random cookie
 * that this sets.
 */
export async function createFormToken(deps: Deps, request: FastifyRequest, reply: FastifyReply): Promise<string> {
  const session = await readBrowserSession(deps, request)
  if (session !== undefined) return deps.pageSigner.sign('form', `session:${session.id}`)
  let visitor = readVisitor(deps, request)
  if (visitor === undefined) {
    visitor = generateToken()
    setCookie(deps, reply, { name: 'visitor', value: visitor })
  }
  return deps.pageSigner.sign('form', `visitor:${visitor}`)
}

/** Refuses a form that another site sent, or that was made for another session. */
export async function requireFormToken(deps: Deps, request: FastifyRequest): Promise<void> {
  const session = await readBrowserSession(deps, request)
  const visitor = readVisitor(deps, request)
  const holder = session === undefined ? visitor && `visitor:${visitor}` : `session:${session.id}`
  const token = (request.body as Record<string, unknown> | null | undefined)?.[formTokenField]
  if (holder !== undefined && typeof token === 'string' && deps.pageSigner.verify('form', holder, token)) return
  const tried = token === undefined ? 'a form without its token' : 'a form with the token of another session'
  request.log.warn({ tried, address: request.ip }, 'refused a form')
  throw new AppError('forbidden', 'This form is no longer valid. Go back, reload the page and send it again.')
}

/**
 * Refuses what a browser says another site sent. A browser too old to say so is left to the token. Origin: null, which a
 * sandboxed frame or a data: page sends, is no origin of ours.
 */
export function refuseForeignOrigin(deps: Pick<Deps, 'config'>, request: FastifyRequest): void {
  if (request.method === 'GET' || request.method === 'HEAD') return
  const { origin, 'sec-fetch-site': site } = request.headers
  const isForeignSite = site !== undefined && site !== 'same-origin' && site !== 'none'
  if (!isForeignSite && (origin === undefined || isOwnOrigin(deps, request, origin))) return
  request.log.warn({ tried: 'a form from another site', origin, site, address: request.ip }, 'refused a form')
  throw new AppError('forbidden', 'The form was sent by another site.')
}

function isOwnOrigin(deps: Pick<Deps, 'config'>, request: FastifyRequest, origin: string): boolean {
  if (origin === new URL(deps.config.publicUrl).origin) return true
  // Reached under another name than the public one, such as an address in the local network.
  return URL.canParse(origin) && new URL(origin).host === request.host
}

function readVisitor(deps: Deps, request: FastifyRequest): string | undefined {
  const visitor = readCookie(deps, request, 'visitor')
  return visitor !== undefined && visitorPattern.test(visitor) ? visitor : undefined
}
