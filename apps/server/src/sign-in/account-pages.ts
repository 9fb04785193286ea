import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { html } from 'ghtml'
import type { Selectable } from 'kysely'
import type { Database } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { isFresh, requireProofOfOwner, setPassword } from '../passwords/actions.ts'
import { listLiveSessions, revokeSession } from '../sessions/queries.ts'
import { findUser } from '../users/queries.ts'
import type { BrowserSession } from './browser-session.ts'
import { createFormToken } from './csrf.ts'
import { describeRefusal, readForm } from './form.ts'
import { type Html, renderField, renderForm } from './page.ts'
import { sendPage } from './scope.ts'
import { forSignedIn } from './signed-in.ts'

type User = Selectable<Database['users']>

const notices = new Map([
  ['password-changed', 'Your password is changed. Every other session was signed out.'],
  ['second-factor-on', 'The second factor is on: from now on signing in with your password asks for a code.'],
  ['second-factor-off', 'The second factor is off.'],
  ['session-ended', 'That session was signed out.'],
])

export function registerAccountPages(app: FastifyInstance, deps: Deps): void {
  app.get(
    '/account',
    forSignedIn(deps, async (request, reply, session) => {
      const { notice } = request.query as Record<string, unknown>
      return await sendAccount(deps, request, reply, session, { notice: notices.get(String(notice)) })
    }),
  )

  app.post(
    '/account/password',
    forSignedIn(deps, async (request, reply, session) => {
      const form = readForm(request, ['current_password', 'new_password'])
      try {
        await requireProofOfOwner(deps, { session, password: form.current_password, address: request.ip })
        await setPassword(deps, {
          userId: session.user_id,
          password: form.new_password,
          exceptSessionId: session.id,
        })
      } catch (error) {
        const refusal = describeRefusal(request, error)
        if (refusal === undefined) throw error
        return await sendAccount(deps, request, reply, session, refusal)
      }
      return reply.redirect('/account?notice=password-changed', 303)
    }),
  )

  app.post(
    '/account/sessions/:sessionId/end',
    forSignedIn(deps, async (request, reply, session) => {
      const { sessionId } = request.params as { sessionId: string }
      if (sessionId.includes('\0')) throw new AppError('not_found')
      await revokeSession(deps.db, { id: sessionId, userId: session.user_id, at: deps.clock() })
      return reply.redirect('/account?notice=session-ended', 303)
    }),
  )
}

async function sendAccount(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  session: BrowserSession,
  state: { notice?: string | undefined; error?: string; field?: string },
): Promise<FastifyReply> {
  const { notice, error, field } = state
  const now = deps.clock()
  const [token, user, sessions] = await Promise.all([
    createFormToken(deps, request, reply),
    findUser(deps.db, { id: session.user_id }),
    listLiveSessions(deps.db, { userId: session.user_id, now }),
  ])
  if (user === undefined) throw new AppError('not_found')
  return sendPage(reply, {
    status: error === undefined ? 200 : 400,
    title: 'Your account',
    error,
    notice,
    body: html`<p>Signed in as <strong>${user.email}</strong></p>
!${renderForm({ action: '/sign-out', token, body: '', button: 'Sign out', isQuiet: true })}
<h2>Password</h2>
!${renderPasswordForm(user, token, { field, isFresh: isFresh(session, now) })}
<h2>Second factor</h2>
!${renderSecondFactor(user)}
<h2>Where you are signed in</h2>
<ul class="list">!${sessions.map((other) => renderSession(other, session.id, token))}</ul>`,
  })
}

function renderPasswordForm(user: User, token: string, state: { field: string | undefined; isFresh: boolean }): Html {
  const hasPassword = user.password_hash !== null
  if (!hasPassword && !state.isFresh) {
    return html`<p>This account has no password. To set one, sign out, sign in again, and come back within ten minutes.</p>`
  }
  const current = renderField({
    name: 'current_password',
    label: 'Current password',
    type: 'password',
    autocomplete: 'current-password',
    isWrong: state.field === 'current_password',
  })
  return renderForm({
    action: '/account/password',
    token,
    body: html`<input type="hidden" autocomplete="username" value="${user.email}">
!${hasPassword ? current : ''}
!${renderNewPasswordField('new_password', state.field === 'password')}`,
    button: hasPassword ? 'Change password' : 'Set password',
  })
}

export function renderNewPasswordField(name: string, isWrong: boolean): Html {
  return renderField({
    name,
    label: 'New password',
    hint: 'At least 12 characters. Several words in a row make a good one.',
    type: 'password',
    autocomplete: 'new-password',
    isWrong,
  })
}

function renderSecondFactor(user: User): Html {
  if (user.password_hash === null) {
    return html`<p>It protects sign-in with a password, which this account does not have.</p>`
  }
  const isOn = user.totp_enabled_at !== null
  return html`<p>${isOn ? 'On: signing in with your password asks for a code of your authenticator app.' : 'Off.'}</p>
<p><a class="button quiet" href="/account/second-factor">${isOn ? 'Turn off' : 'Set up an authenticator app'}</a></p>`
}

const clientNames: Record<string, string> = { browser: 'Browser', command_line: 'Command line' }

function renderSession(
  session: Awaited<ReturnType<typeof listLiveSessions>>[number],
  currentId: string,
  token: string,
): Html {
  const isCurrent = session.id === currentId
  const since = `${session.created_at.toISOString().slice(0, 16).replace('T', ' ')} UTC`
  const name = clientNames[session.client] ?? session.client
  return html`<li>
<strong>${name}${isCurrent ? ' (this one)' : ''}</strong>
<p class="soft">Since ${since}, from ${session.address ?? 'an unknown address'}<br>${session.user_agent ?? ''}</p>
!${isCurrent ? '' : renderForm({ action: `/account/sessions/${encodeURIComponent(session.id)}/end`, token, body: '', button: 'Sign out', isQuiet: true })}
</li>`
}
