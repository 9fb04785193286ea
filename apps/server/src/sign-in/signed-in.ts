import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Deps } from '../deps.ts'
import { type BrowserSession, readBrowserSession } from './browser-session.ts'
import { requireFormToken } from './csrf.ts'

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/** A page for who is signed in; others are sent to sign in and then back. A form must have come from here. */
export function forSignedIn(
  deps: Deps,
  handle: (request: FastifyRequest, reply: FastifyReply, session: BrowserSession) => Promise<FastifyReply>,
): Handler {
  return async (request, reply) => {
    const session = await readBrowserSession(deps, request)
    const isForm = request.method === 'POST'
    if (session === undefined) return redirectToSignIn(reply, isForm ? '/account' : request.url)
    if (isForm) await requireFormToken(deps, request)
    return await handle(request, reply, session)
  }
}

export function redirectToSignIn(reply: FastifyReply, returnTo: string): FastifyReply {
  return reply.redirect(`/sign-in?${new URLSearchParams({ return_to: returnTo })}`, 303)
}
