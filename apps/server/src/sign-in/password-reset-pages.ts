import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { html } from 'ghtml'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { findAccountOfReset, requestPasswordReset, resetPassword } from '../passwords/actions.ts'
import { renderNewPasswordField } from './account-pages.ts'
import { clearSessionCookie } from './browser-session.ts'
import { createFormToken, requireFormToken } from './csrf.ts'
import { describeRefusal, readForm } from './form.ts'
import { renderField, renderForm } from './page.ts'
import { sendPage } from './scope.ts'

/** A mail is put in the queue only where there is an account, which takes some milliseconds: every answer takes longer. */
const answerMs = 250

export function registerPasswordResetPages(app: FastifyInstance, deps: Deps): void {
  app.get('/reset-password', async (request, reply) => {
    if (deps.config.mail === undefined) return sendNoMail(reply)
    const token = await createFormToken(deps, request, reply)
    const body = renderField({ name: 'email', label: 'E-mail', type: 'email', autocomplete: 'username' })
    return sendPage(reply, {
      title: 'Forgot your password?',
      body: html`<p>Enter your e-mail, and a link to set a new password is sent to you.</p>
!${renderForm({ action: '/reset-password', token, body, button: 'Send the link' })}
<p class="small"><a href="/sign-in">Back to sign-in</a></p>`,
    })
  })

  app.post('/reset-password', async (request, reply) => {
    await requireFormToken(deps, request)
    if (deps.config.mail === undefined) return sendNoMail(reply)
    const email = readForm(request, ['email']).email.trim()
    await Promise.all([requestPasswordReset(deps, { email, address: request.ip }), delay(answerMs)])
    return sendPage(reply, {
      title: 'Look into your mailbox',
      body: html`<p>If there is an account with that e-mail, a link to set a new password is on its way. It works for an hour.</p>
<p class="small"><a href="/sign-in">Back to sign-in</a></p>`,
    })
  })

  app.get('/reset-password/:token', async (request, reply) => await sendResetForm(deps, request, reply))

  app.post('/reset-password/:token', async (request, reply) => {
    await requireFormToken(deps, request)
    const form = readForm(request, ['new_password', 'repeated_password'])
    try {
      if (form.new_password !== form.repeated_password) {
        throw new AppError('invalid_request', 'repeated_password: is not the same as the first')
      }
      await resetPassword(deps, { token: readToken(request), password: form.new_password })
    } catch (error) {
      const refusal = describeRefusal(request, error)
      if (refusal === undefined) throw error
      return await sendResetForm(deps, request, reply, refusal)
    }
    clearSessionCookie(deps, reply)
    return reply.redirect('/sign-in?notice=password-set', 303)
  })
}

function readToken(request: FastifyRequest): string {
  return (request.params as { token: string }).token
}

function sendNoMail(reply: FastifyReply): FastifyReply {
  return sendPage(reply, {
    status: 404,
    title: 'Forgot your password?',
    body: html`<p>This server sends no mail. Whoever runs it can set a new password for you.</p>
<p class="small"><a href="/sign-in">Back to sign-in</a></p>`,
  })
}

async function sendResetForm(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  refusal?: { error: string; field: string },
): Promise<FastifyReply> {
  const linkToken = readToken(request)
  const account = await findAccountOfReset(deps, { token: linkToken })
  if (account === undefined) throw new AppError('not_found', 'This link was used already, or is too old.')
  const token = await createFormToken(deps, request, reply)
  const repeated = renderField({
    name: 'repeated_password',
    label: 'Once more',
    type: 'password',
    autocomplete: 'new-password',
    isWrong: refusal?.field === 'repeated_password',
  })
  const body = html`<input type="hidden" autocomplete="username" value="${account.email}">
!${renderNewPasswordField('new_password', refusal?.field === 'password')}
!${repeated}`
  return sendPage(reply, {
    status: refusal === undefined ? 200 : 400,
    title: 'Set a new password',
    error: refusal?.error,
    body: html`<p>For <strong>${account.email}</strong></p>
!${renderForm({ action: `/reset-password/${encodeURIComponent(linkToken)}`, token, body, button: 'Set password' })}`,
  })
}
