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

  const registerForm = (
    action: string,
    next: string,
    act: (request: FastifyRequest, session: BrowserSession) => Promise<void>,
  ) => {
    app.post(
      `${path}/${action}`,
      forSignedIn(deps, async (request, reply, session) => {
        try {
          await act(request, session)
        } catch (error) {
          const refusal = describeRefusal(request, error)
          if (refusal === undefined) throw error
          return await sendSecondFactor(deps, request, reply, session, refusal)
        }
        return reply.redirect(next, 303)
      }),
    )
  }
  const requirePassword = async (request: FastifyRequest, session: BrowserSession) => {
    const form = readForm(request, ['current_password'])
    await requireProofOfOwner(deps, { session, password: form.current_password, address: request.ip })
  }

  registerForm('start', path, async (request, session) => {
    await requirePassword(request, session)
    await startSecondFactor(deps, { userId: session.user_id })
  })
  registerForm('confirm', '/account?notice=second-factor-on', async (request, session) => {
    await turnOnSecondFactor(deps, { userId: session.user_id, code: readForm(request, ['code']).code })
  })
  registerForm('off', '/account?notice=second-factor-off', async (request, session) => {
    await requirePassword(request, session)
    await turnOffSecondFactor(deps, { userId: session.user_id })
  })
}

async function sendSecondFactor(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  session: BrowserSession,
  refusal?: { error: string; field: string },
): Promise<FastifyReply> {
  const token = await createFormToken(deps, request, reply)
  const user = await findUser(deps.db, { id: session.user_id })
  if (user === undefined) throw new AppError('not_found')
  const isWrong = refusal !== undefined
  const body = await renderStep(deps, user, { token, isWrong })
  return sendPage(reply, {
    status: isWrong ? 400 : 200,
    title: 'Second factor',
    error: refusal?.error,
    body: html`!${body}
<p class="small"><a href="/account">Back to your account</a></p>`,
  })
}

async function renderStep(
  deps: Deps,
  user: NonNullable<Awaited<ReturnType<typeof findUser>>>,
  state: { token: string; isWrong: boolean },
): Promise<Html> {
  const { token, isWrong } = state
  if (user.password_hash === null) {
    return html`<p>It protects sign-in with a password, which this account does not have. Set one first.</p>`
  }
  const password = renderField({
    name: 'current_password',
    label: 'Current password',
    type: 'password',
    autocomplete: 'current-password',
    isWrong,
  })
  if (user.totp_enabled_at !== null) {
    return html`<p>On: signing in with your password asks for a code of your authenticator app.</p>
!${renderForm({ action: `${path}/off`, token, body: password, button: 'Turn off' })}`
  }
  if (user.totp_secret === null) {
    return html`<p>With it, signing in takes your password and a code that an app on your phone shows.</p>
!${renderForm({ action: `${path}/start`, token, body: password, button: 'Continue' })}`
  }
  return await renderEnrolment(deps, { email: user.email, secret: user.totp_secret, token, isWrong })
}

async function renderEnrolment(
  deps: Deps,
  input: { email: string; secret: Buffer; token: string; isWrong: boolean },
): Promise<Html> {
  const { token, isWrong } = input
  const { uri, text } = describeSecret({ ...input, publicUrl: deps.config.publicUrl })
  const picture = await qrCode.toString(uri, { type: 'svg', margin: 1 })
  return html`<p>Scan this with an authenticator app, then enter the code that it shows.</p>
<div class="qr" role="img" aria-label="QR code of the key below">!${picture}</div>
<p>Or type this key into the app:<br><code>${text}</code></p>
!${renderForm({ action: `${path}/confirm`, token, body: renderCodeField({ isWrong, isFocused: false }), button: 'Turn on' })}`
}
