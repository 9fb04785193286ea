import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { html } from 'ghtml'
import { z } from 'zod'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { validate } from '../http/validation.ts'
import { readBrowserSession } from '../sign-in/browser-session.ts'
import { createFormToken, requireFormToken } from '../sign-in/csrf.ts'
import { renderForm } from '../sign-in/page.ts'
import { allowFormTarget, sendPage } from '../sign-in/scope.ts'
import { redirectToSignIn } from '../sign-in/signed-in.ts'
import { issueCode } from './actions.ts'
import { addOutcome, readLoopbackTarget } from './rules.ts'

const LoginQuery = z.object({ continue: z.string().optional() })
const LoginForm = z.object({ continue: z.string(), decision: z.enum(['allow', 'deny']) })

/** `/login?continue=http://localhost:PORT/callback`: what the public command line client opens in the browser. */
export function registerCommandLineSignInPages(app: FastifyInstance, deps: Deps): void {
  app.get('/login', async (request, reply) => {
    const { continue: asked } = validate(LoginQuery, request.query)
    if (asked === undefined) return reply.redirect('/sign-in', 303)
    const target = requireTarget(request, asked)
    const session = await readBrowserSession(deps, request)
    if (session === undefined) return redirectToSignIn(reply, `/login?continue=${encodeURIComponent(asked)}`)
    return await sendConsentPage(deps, request, reply, { target, email: session.email })
  })

  app.post('/login', async (request, reply) => {
    await requireFormToken(deps, request)
    const form = validate(LoginForm, request.body)
    const target = requireTarget(request, form.continue)
    const session = await readBrowserSession(deps, request)
    if (session === undefined) throw new AppError('forbidden', 'You have been signed out. Start again.')
    if (form.decision === 'deny') return reply.redirect(addOutcome(target, { error: 'access_denied' }), 303)
    const code = await issueCode(deps, {
      userId: session.user_id,
      sessionId: session.id,
      issuer: session.issuer,
      isMfa: session.is_mfa,
      target,
    })
    return reply.redirect(addOutcome(target, { code }), 303)
  })
}

function requireTarget(request: FastifyRequest, asked: string): URL {
  const target = readLoopbackTarget(asked)
  if (target !== undefined) return target
  request.log.warn({ tried: 'a sign-in that continues on another host', address: request.ip }, 'refused a sign-in')
  throw new AppError(
    'invalid_request',
    'continue: must be http://localhost, http://127.0.0.1 or http://[::1], with a port',
  )
}

async function sendConsentPage(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  input: { target: URL; email: string },
): Promise<FastifyReply> {
  const token = await createFormToken(deps, request, reply)
  const form = (decision: 'allow' | 'deny', button: string) =>
    renderForm({
      action: '/login',
      token,
      body: html`<input type="hidden" name="continue" value="${input.target.href}">
<input type="hidden" name="decision" value="${decision}">`,
      button,
      isQuiet: decision === 'deny',
    })
  // The answer to the form leads to the client: without this the browser would not follow it there.
  allowFormTarget(reply, input.target.origin)
  return sendPage(reply, {
    title: 'Sign in to the command line',
    body: html`<p>The command line client on this computer asks to be signed in as <strong>${input.email}</strong>. It will be able to do
all that you can do: publish releases and patches, and manage apps.</p>
<p>Go on only if you have just started this yourself.</p>
!${form('allow', 'Allow')}
!${form('deny', 'Cancel')}`,
  })
}
