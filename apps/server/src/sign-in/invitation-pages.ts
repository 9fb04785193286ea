import type { InvitedRole } from '@godwit/contract'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { html } from 'ghtml'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { readSource } from '../http/request-source.ts'
import { acceptInvitationByToken, declineInvitationByToken } from '../invitations/answer-actions.ts'
import { findInvitationByToken } from '../invitations/queries.ts'
import { findUserByEmail } from '../users/queries.ts'
import { renderNewPasswordField } from './account-pages.ts'
import { toActor } from './actor-of-session.ts'
import { readBrowserSession, signInBrowser } from './browser-session.ts'
import { createFormToken, requireFormToken } from './csrf.ts'
import { describeRefusal, readForm } from './form.ts'
import { joinByInvitation } from './join-by-invitation.ts'
import { type Html, renderField, renderForm } from './page.ts'
import { sendPage } from './scope.ts'
import { forSignedIn } from './signed-in.ts'

type Invitation = NonNullable<Awaited<ReturnType<typeof findInvitationByToken>>>

const path = '/invitations/:token'

const roleLabels: Record<InvitedRole, string> = {
  admin: 'Admin',
  appManager: 'App manager',
  developer: 'Developer',
  viewer: 'Viewer',
}

export function registerInvitationPages(app: FastifyInstance, deps: Deps): void {
  app.get(path, async (request, reply) => await sendInvitation(deps, request, reply))

  app.post(
    `${path}/accept`,
    forSignedIn(deps, async (request, reply, session) => {
      const token = readToken(request)
      const invitation = await getInvitation(deps, token)
      await acceptInvitationByToken(deps, toActor(session, request), { token, userId: session.user_id })
      return sendAnswered(reply, 'You are in', describeJoined(invitation))
    }),
  )

  app.post(
    `${path}/decline`,
    forSignedIn(deps, async (request, reply, session) => {
      const input = { token: readToken(request), userId: session.user_id }
      await declineInvitationByToken(deps, toActor(session, request), input)
      return sendAnswered(reply, 'Declined', 'You declined the invitation.')
    }),
  )

  app.post(`${path}/join`, async (request, reply) => {
    await requireFormToken(deps, request)
    const token = readToken(request)
    const form = readForm(request, ['display_name', 'new_password'])
    const invitation = await getInvitation(deps, token)
    try {
      const account = await joinByInvitation(deps, {
        token,
        email: invitation.email,
        displayName: form.display_name.trim(),
        password: form.new_password,
        source: readSource(request),
      })
      await signInBrowser(deps, request, reply, { ...account, issuer: deps.config.publicUrl, isMfa: false })
    } catch (error) {
      const refusal = describeRefusal(request, error)
      if (refusal === undefined) throw error
      return await sendInvitation(deps, request, reply, { ...refusal, displayName: form.display_name })
    }
    return sendAnswered(reply, 'You are in', describeJoined(invitation))
  })
}

function readToken(request: FastifyRequest): string {
  return (request.params as { token: string }).token
}

async function getInvitation(deps: Deps, token: string): Promise<Invitation> {
  const invitation = await findInvitationByToken(deps.db, { token, now: deps.clock() })
  if (invitation === undefined) {
    throw new AppError('not_found', 'This invitation was answered, withdrawn, or is too old.')
  }
  return invitation
}

async function sendInvitation(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  refusal?: { error: string; field: string; displayName: string },
): Promise<FastifyReply> {
  const token = readToken(request)
  const invitation = await getInvitation(deps, token)
  const formToken = await createFormToken(deps, request, reply)
  const session = await readBrowserSession(deps, request)
  const target = { path: `/invitations/${encodeURIComponent(token)}`, email: invitation.email, formToken }
  let answer: Html
  if (session !== undefined) answer = renderAnswer(target, session.email)
  else if ((await findUserByEmail(deps.db, invitation)) !== undefined) answer = renderSignInLink(target)
  else answer = renderJoinForm(target, refusal)
  return sendPage(reply, {
    status: refusal === undefined ? 200 : 400,
    title: `Invitation to ${invitation.app_name ?? invitation.organization_name}`,
    error: refusal?.error,
    body: html`<p>${describeInvitation(invitation)}</p>
<dl><dt>Role</dt><dd>${roleLabels[invitation.role]}</dd><dt>For</dt><dd>${invitation.email}</dd></dl>
!${answer}`,
  })
}

type Target = { path: string; email: string; formToken: string }

function renderAnswer(target: Target, signedInAs: string): Html {
  const { path, email, formToken: token } = target
  if (signedInAs.toLowerCase() !== email.toLowerCase()) {
    return html`<p>You are signed in as <strong>${signedInAs}</strong>. To answer, sign out, then open this link again.</p>
!${renderForm({ action: '/sign-out', token, body: '', button: 'Sign out' })}`
  }
  return html`!${renderForm({ action: `${path}/accept`, token, body: '', button: 'Accept' })}
!${renderForm({ action: `${path}/decline`, token, body: '', button: 'Decline', isQuiet: true })}`
}

function renderSignInLink(target: Target): Html {
  return html`<p><a class="button" href="/sign-in?${new URLSearchParams({ return_to: target.path })}">Sign in to answer</a></p>`
}

function renderJoinForm(target: Target, refusal?: { field: string; displayName: string }): Html {
  const name = renderField({
    name: 'display_name',
    label: 'Your name (optional)',
    autocomplete: 'name',
    value: refusal?.displayName ?? '',
    isOptional: true,
    isWrong: refusal?.field === 'display_name',
    maxLength: 128,
  })
  const form = renderForm({
    action: `${target.path}/join`,
    token: target.formToken,
    body: html`<input type="hidden" autocomplete="username" value="${target.email}">
!${name}
!${renderNewPasswordField('new_password', refusal?.field === 'password')}`,
    button: 'Create the account and accept',
  })
  return html`<h2>Create your account</h2>
!${form}
!${renderSignInLink(target)}`
}

function describeInvitation(invitation: Invitation): string {
  const { app_name: app, organization_name: organization } = invitation
  const target = app === null ? `the organization ${organization}` : `the app ${app} of ${organization}`
  return `${invitation.invited_by ?? organization} invites you to ${target}.`
}

function describeJoined(invitation: Invitation): string {
  const { app_name: app, organization_name: organization } = invitation
  return app === null ? `You are now a member of ${organization}.` : `You now work on ${app} of ${organization}.`
}

function sendAnswered(reply: FastifyReply, title: string, text: string): FastifyReply {
  return sendPage(reply, {
    title,
    body: html`<p>${text}</p>
<p><a href="/account">Go to your account</a></p>`,
  })
}
