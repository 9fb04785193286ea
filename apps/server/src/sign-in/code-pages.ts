import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { html } from 'ghtml'
import type { Deps } from '../deps.ts'
import { acceptCode } from '../second-factor/actions.ts'
import { signInBrowser } from './browser-session.ts'
import { createFormToken, requireFormToken } from './csrf.ts'
import { readForm } from './form.ts'
import { type Html, renderField, renderForm } from './page.ts'
import { forgetPendingSignIn, readPendingSignIn } from './pending-sign-in.ts'
import { sendPage } from './scope.ts'
import { toSignIn } from './sign-in-pages.ts'

/** The second step of sign-in: the code, after the password was right. */
export function registerCodePages(app: FastifyInstance, deps: Deps): void {
  app.get('/sign-in/code', async (request, reply) => {
    const pending = await readPendingSignIn(deps, request)
    if (pending === undefined) return reply.redirect('/sign-in', 303)
    return await sendCodeForm(deps, request, reply)
  })

  app.post('/sign-in/code', async (request, reply) => {
    await requireFormToken(deps, request)
    const { code } = readForm(request, ['code'])
    const pending = await readPendingSignIn(deps, request)
    if (pending === undefined) return reply.redirect('/sign-in', 303)
    if (!(await acceptCode(deps, { userId: pending.userId, code, pendingId: pending.id }))) {
      const { userId } = pending
      request.log.warn({ tried: 'a wrong or used code', userId, address: request.ip }, 'refused a sign-in')
      return await sendCodeForm(deps, request, reply, 'The code is wrong or was used already. Wait for the next one.')
    }
    forgetPendingSignIn(deps, reply)
    await signInBrowser(deps, request, reply, { ...toSignIn(deps, pending), isMfa: true })
    return reply.redirect(pending.returnTo, 303)
  })
}

async function sendCodeForm(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  error?: string,
): Promise<FastifyReply> {
  const token = await createFormToken(deps, request, reply)
  const body = renderCodeField({ isWrong: error !== undefined })
  return sendPage(reply, {
    status: error === undefined ? 200 : 400,
    title: 'Enter your code',
    error,
    body: html`!${renderForm({ action: '/sign-in/code', token, body, button: 'Sign in' })}
<p class="small">Your authenticator app is lost? Whoever runs this server can turn the second factor off.
<a href="/sign-in">Start again</a></p>`,
  })
}

export function renderCodeField(state: { isWrong: boolean; isFocused?: boolean }): Html {
  return renderField({
    name: 'code',
    label: 'Code',
    hint: 'The six digits that your authenticator app shows.',
    autocomplete: 'one-time-code',
    inputMode: 'numeric',
    maxLength: 12,
    isFocused: true,
    ...state,
  })
}
