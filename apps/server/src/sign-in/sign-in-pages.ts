import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { html } from 'ghtml'
import type { Deps } from '../deps.ts'
import { findAccountByPassword } from '../passwords/actions.ts'
import { revokeSession } from '../sessions/queries.ts'
import { clearSessionCookie, readBrowserSession, signInBrowser } from './browser-session.ts'
import { createFormToken, requireFormToken } from './csrf.ts'
import { readForm } from './form.ts'
import { type Html, renderField, renderForm } from './page.ts'
import { rememberPendingSignIn } from './pending-sign-in.ts'
import { chooseReturnTo } from './return-to.ts'
import { sendPage } from './scope.ts'

const notices = new Map([
  ['signed-out', 'You are signed out.'],
  ['password-set', 'Your new password is set. Sign in with it.'],
])

export function registerSignInForm(app: FastifyInstance, deps: Deps): void {
  app.get('/sign-in', async (request, reply) => {
    const query = request.query as Record<string, unknown>
    const returnTo = chooseReturnTo(deps.config.publicUrl, query.return_to)
    if ((await readBrowserSession(deps, request)) !== undefined) return reply.redirect(returnTo, 303)
    return await sendSignInForm(deps, request, reply, { returnTo, notice: notices.get(String(query.notice)) })
  })

  app.post('/sign-in', async (request, reply) => {
    await requireFormToken(deps, request)
    const form = readForm(request, ['email', 'password', 'return_to'])
    const email = form.email.trim()
    const returnTo = chooseReturnTo(deps.config.publicUrl, form.return_to)
    const account = await findAccountByPassword(deps, { email, password: form.password, address: request.ip })
    if (account === undefined) {
      request.log.warn({ tried: 'a wrong e-mail or password', address: request.ip }, 'refused a sign-in')
      const error = 'The e-mail or the password is wrong.'
      return await sendSignInForm(deps, request, reply, { returnTo, email, error })
    }
    if (account.hasSecondFactor) {
      rememberPendingSignIn(deps, reply, { ...account, returnTo })
      return reply.redirect('/sign-in/code', 303)
    }
    await signInBrowser(deps, request, reply, { ...toSignIn(deps, account), isMfa: false })
    return reply.redirect(returnTo, 303)
  })

  app.post('/sign-out', async (request, reply) => {
    const session = await readBrowserSession(deps, request)
    if (session !== undefined) {
      await requireFormToken(deps, request)
      await revokeSession(deps.db, { id: session.id, at: deps.clock() })
    }
    clearSessionCookie(deps, reply)
    return reply.redirect('/sign-in?notice=signed-out', 303)
  })
}

/** The service itself vouches for who has shown a password. */
export function toSignIn(deps: Deps, account: { userId: number; passwordHash: string }) {
  return { userId: account.userId, passwordHash: account.passwordHash, issuer: deps.config.publicUrl }
}

async function sendSignInForm(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  state: { returnTo: string; email?: string; error?: string; notice?: string | undefined },
): Promise<FastifyReply> {
  const { returnTo, email = '', error, notice } = state
  const isWrong = error !== undefined
  const fields = html`<input type="hidden" name="return_to" value="${returnTo}">
!${renderField({ name: 'email', label: 'E-mail', type: 'email', autocomplete: 'username', value: email, isWrong, isFocused: !isWrong })}
!${renderField({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', isWrong, isFocused: isWrong })}`
  const token = await createFormToken(deps, request, reply)
  return sendPage(reply, {
    status: isWrong ? 400 : 200,
    title: 'Sign in',
    error,
    notice,
    body: html`!${renderForm({ action: '/sign-in', token, body: fields, button: 'Sign in' })}
!${deps.config.mail === undefined ? '' : html`<p class="small"><a href="/reset-password">Forgot your password?</a></p>`}
!${renderProviders(deps, returnTo)}`,
  })
}

function renderProviders(deps: Deps, returnTo: string): Html {
  const providers = deps.config.identityProviders
  if (providers.length === 0) return ''
  const query = new URLSearchParams({ return_to: returnTo })
  const links = providers.map(
    ({ id, name }) => html`<a class="button quiet" href="/sign-in/with/${id}?${query}">Sign in with ${name}</a>`,
  )
  return html`<p class="or">or</p>
!${links}`
}
