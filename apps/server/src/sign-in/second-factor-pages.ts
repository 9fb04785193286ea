import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { html } from 'ghtml'
import qrCode from 'qrcode'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { requireProofOfOwner } from '../passwords/actions.ts'
import { startSecondFactor, turnOffSecondFactor, turnOnSecondFactor } from '../second-factor/actions.ts'
import { describeSecret } from '../second-factor/rules.ts'
import { findUser } from '../users/queries.ts'
import type { BrowserSession } from './browser-session.ts'
import { renderCodeField } from './code-pages.ts'
import { createFormToken } from './csrf.ts'
import { describeRefusal, readForm } from './form.ts'
import { type Html, renderField, renderForm } from './page.ts'
import { sendPage } from './scope.ts'
import { forSignedIn } from './signed-in.ts'

const path = '/account/second-factor'

export function registerSecondFactorPages(app: FastifyInstance, deps: Deps): void {
  app.get(
    path,
    forSignedIn(deps, async (request, reply, session) => await sendSecondFactor(deps, request, reply, session)),
  )

  /** Each step needs the password: a stolen session neither sees the secret nor turns anything on or off. */
  const registerForm = (
    action: string,
    act: (request: FastifyRequest, reply: FastifyReply, session: BrowserSession) => Promise<FastifyReply>,
  ) => {
    app.post(
      `${path}/${action}`,
      forSignedIn(deps, async (request, reply, session) => {
        const form = readForm(request, ['current_password'])
        let isOwner = false
        try {
          await requireProofOfOwner(deps, { session, password: form.current_password, address: request.ip })
          isOwner = true
          return await act(request, reply, session)
        } catch (error) {
          const refusal = describeRefusal(request, error)
          if (refusal === undefined) throw error
          return await sendSecondFactor(deps, request, reply, session, { refusal, showsSecret: isOwner })
        }
      }),
    )
  }

  registerForm('start', async (request, reply, session) => {
    await startSecondFactor(deps, { userId: session.user_id, sessionId: session.id })
    return await sendSecondFactor(deps, request, reply, session, { showsSecret: true })
  })
  registerForm('confirm', async (request, reply, session) => {
    const { code } = readForm(request, ['code'])
    await turnOnSecondFactor(deps, { userId: session.user_id, sessionId: session.id, code })
    return reply.redirect('/account?notice=second-factor-on', 303)
  })
  registerForm('off', async (_request, reply, session) => {
    await turnOffSecondFactor(deps, { userId: session.user_id, sessionId: session.id })
    return reply.redirect('/account?notice=second-factor-off', 303)
  })
}

async function sendSecondFactor(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  session: BrowserSession,
  state: { refusal?: { error: string; field: string }; showsSecret?: boolean } = {},
): Promise<FastifyReply> {
  const token = await createFormToken(deps, request, reply)
  const user = await findUser(deps.db, { id: session.user_id })
  if (user === undefined) throw new AppError('not_found')
  const { refusal, showsSecret = false } = state
  const body = await renderStep(deps, user, { token, wrongField: refusal?.field, showsSecret })
  return sendPage(reply, {
    status: refusal === undefined ? 200 : 400,
    title: 'Second factor',
    error: refusal?.error,
    body: html`!${body}
<p class="small"><a href="/account">Back to your account</a></p>`,
  })
}

async function renderStep(
  deps: Deps,
  user: NonNullable<Awaited<ReturnType<typeof findUser>>>,
  state: { token: string; wrongField: string | undefined; showsSecret: boolean },
): Promise<Html> {
  const { token, wrongField } = state
  if (user.password_hash === null) {
    return html`<p>It protects sign-in with a password, which this account does not have. Set one first.</p>`
  }
  const password = renderPasswordField(wrongField === 'current_password')
  if (user.totp_enabled_at !== null) {
    return html`<p>On: signing in with your password asks for a code of your authenticator app.</p>
!${renderForm({ action: `${path}/off`, token, body: password, button: 'Turn off' })}`
  }
  if (state.showsSecret && user.totp_secret !== null) {
    return await renderEnrolment(deps, { email: user.email, secret: user.totp_secret, token, wrongField })
  }
  return html`<p>With it, signing in takes your password and a code that an app on your phone shows.</p>
!${renderForm({ action: `${path}/start`, token, body: password, button: 'Continue' })}`
}

function renderPasswordField(isWrong: boolean): Html {
  return renderField({
    name: 'current_password',
    label: 'Current password',
    type: 'password',
    autocomplete: 'current-password',
    isWrong,
  })
}

async function renderEnrolment(
  deps: Deps,
  input: { email: string; secret: Buffer; token: string; wrongField: string | undefined },
): Promise<Html> {
  const { token, wrongField } = input
  const { uri, text } = describeSecret({ ...input, publicUrl: deps.config.publicUrl })
  const picture = await qrCode.toString(uri, { type: 'svg', margin: 1 })
  const fields = html`!${renderCodeField({ isWrong: wrongField === 'code', isFocused: false })}
!${renderPasswordField(wrongField === 'current_password')}`
  return html`<p>Scan this with an authenticator app, then enter the code that it shows.</p>
<div class="qr" role="img" aria-label="QR code of the key below">!${picture}</div>
<p>Or type this key into the app:<br><code>${text}</code></p>
!${renderForm({ action: `${path}/confirm`, token, body: fields, button: 'Turn on' })}`
}
