import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { html } from 'ghtml'
import type Provider from 'oidc-provider'
import type { InteractionResults } from 'oidc-provider'
import { z } from 'zod'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { validate } from '../http/validation.ts'
import { startClientSession } from '../sessions/actions.ts'
import { type BrowserSession, readBrowserSession, readOrigin } from '../sign-in/browser-session.ts'
import { createFormToken, requireFormToken } from '../sign-in/csrf.ts'
import { renderForm } from '../sign-in/page.ts'
import { allowFormTarget, sendPage } from '../sign-in/scope.ts'
import { redirectToSignIn } from '../sign-in/signed-in.ts'
import { consoleClientId } from './clients.ts'
import type { AuthorizationServer } from './provider.ts'
import { prepareRequest } from './routes.ts'

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>

/** As long as a device code lives. */
const unredeemedLifetimeMs = 10 * 60_000

const DecisionForm = z.object({ decision: z.enum(['allow', 'deny']) })

/** Where the library sends the browser when it needs a person: to be signed in, and to agree. */
export function registerInteractionPages(
  app: FastifyInstance,
  deps: Deps,
  authorizationServer: AuthorizationServer,
): void {
  app.get<{ Params: { uid: string } }>('/interaction/:uid', async (request, reply) => {
    const { provider, interaction } = await findInteraction(deps, authorizationServer, request, reply)
    const session = await readBrowserSession(deps, request)
    if (session === undefined) return redirectToSignIn(reply, `/interaction/${request.params.uid}`)
    if (interaction.prompt.name === 'login') {
      const login = { accountId: String(session.user_id), remember: false }
      const location = await recordResult(deps, provider, request, reply, { login })
      // Not before: the library takes no result for a session that has changed.
      await forgetOtherPerson(provider, interaction, login.accountId)
      return reply.redirect(location, 303)
    }
    if (!hasOpenIdScope(interaction)) {
      const refusal = { error: 'invalid_scope', error_description: 'scope: must have openid' }
      return reply.redirect(await recordResult(deps, provider, request, reply, refusal), 303)
    }
    // Our own console asks nobody whether it may sign in: it is the service itself.
    if (interaction.params.client_id === consoleClientId) {
      const result = await agree(deps, provider, interaction, request, session)
      return reply.redirect(await recordResult(deps, provider, request, reply, result), 303)
    }
    return await sendConsentPage(deps, provider, interaction, request, reply, session)
  })

  app.post<{ Params: { uid: string } }>('/interaction/:uid', async (request, reply) => {
    await requireFormToken(deps, request)
    const { decision } = validate(DecisionForm, request.body)
    const { provider, interaction } = await findInteraction(deps, authorizationServer, request, reply)
    const session = await readBrowserSession(deps, request)
    if (session === undefined) throw new AppError('forbidden', 'You have been signed out. Start again.')
    if (decision === 'deny') {
      const refusal = { error: 'access_denied', error_description: 'The person said no.' }
      return reply.redirect(await recordResult(deps, provider, request, reply, refusal), 303)
    }
    const result = await agree(deps, provider, interaction, request, session)
    return reply.redirect(await recordResult(deps, provider, request, reply, result), 303)
  })
}

/** The library takes requests without it, but has nothing to grant then. */
function hasOpenIdScope(interaction: Interaction): boolean {
  return String(interaction.params.scope ?? '')
    .split(' ')
    .includes('openid')
}

async function findInteraction(
  deps: Deps,
  authorizationServer: AuthorizationServer,
  request: FastifyRequest<{ Params: { uid: string } }>,
  reply: FastifyReply,
): Promise<{ provider: Provider; interaction: Interaction }> {
  const provider = await authorizationServer.getProvider()
  prepareRequest(request.raw, deps.config.publicUrl)
  const interaction = await provider.interactionDetails(request.raw, reply.raw).catch(() => undefined)
  if (interaction?.uid !== request.params.uid) throw new AppError('not_found', 'This sign-in has expired. Start again.')
  return { provider, interaction }
}

/**
 * When somebody else was signed in to this browser before, the library would first have its own session ended by a page that sends itself
 * with a script. Its session is handed over instead, without what the other person agreed to; its identifier changes in the next step.
 */
async function forgetOtherPerson(provider: Provider, interaction: Interaction, accountId: string): Promise<void> {
  const { uid, accountId: previousId } = interaction.session ?? {}
  if (uid === undefined || previousId === undefined || previousId === accountId) return
  const session = await provider.Session.findByUid(uid)
  if (session === undefined) return
  session.loginAccount({ accountId, loginTs: undefined, amr: undefined, acr: undefined, transient: true })
  session.authorizations = {}
  await session.persist()
}

/** Where the browser goes on. */
async function recordResult(
  deps: Deps,
  provider: Provider,
  request: FastifyRequest,
  reply: FastifyReply,
  result: InteractionResults,
): Promise<string> {
  prepareRequest(request.raw, deps.config.publicUrl)
  return await provider.interactionResult(request.raw, reply.raw, result)
}

/** A grant with all that was asked for, and the session that it stands for, under the grant's id. */
async function agree(
  deps: Deps,
  provider: Provider,
  interaction: Interaction,
  request: FastifyRequest,
  session: BrowserSession,
): Promise<InteractionResults> {
  const clientId = String(interaction.params.client_id)
  if (interaction.session?.accountId !== String(session.user_id)) {
    throw new AppError('forbidden', 'Somebody else has signed in meanwhile. Start again.')
  }
  const grant = new provider.Grant({ accountId: String(session.user_id), clientId })
  const { missingOIDCScope, missingOIDCClaims } = interaction.prompt.details as {
    missingOIDCScope?: string[]
    missingOIDCClaims?: string[]
  }
  if (missingOIDCScope !== undefined) grant.addOIDCScope(missingOIDCScope.join(' '))
  if (missingOIDCClaims !== undefined) grant.addOIDCClaims(missingOIDCClaims)
  const grantId = await grant.save()
  await startClientSession(deps.db, {
    id: grantId,
    userId: session.user_id,
    issuer: session.issuer,
    isMfa: session.is_mfa,
    client: clientId,
    ...readOrigin(request),
    now: deps.clock(),
    // Until the first token, which moves the end: a code that nobody redeems leaves no session behind.
    lifetimeMs: unredeemedLifetimeMs,
  })
  return { consent: { grantId } }
}

async function sendConsentPage(
  deps: Deps,
  provider: Provider,
  interaction: Interaction,
  request: FastifyRequest,
  reply: FastifyReply,
  session: BrowserSession,
): Promise<FastifyReply> {
  const client = await provider.Client.find(String(interaction.params.client_id))
  const token = await createFormToken(deps, request, reply)
  const form = (decision: 'allow' | 'deny', button: string) =>
    renderForm({
      action: `/interaction/${interaction.uid}`,
      token,
      body: html`<input type="hidden" name="decision" value="${decision}">`,
      button,
      isQuiet: decision === 'deny',
    })
  // The answer to the form leads to the client: without this the browser would not follow it there.
  const { redirect_uri: redirectUri } = interaction.params
  if (typeof redirectUri === 'string') allowFormTarget(reply, new URL(redirectUri).origin)
  return sendPage(reply, {
    title: `Sign in to ${client?.clientName ?? 'the client'}`,
    body: html`<p><strong>${client?.clientName ?? interaction.params.client_id}</strong> asks to be signed in as
<strong>${session.email}</strong>. It will be able to do all that you can do.</p>
<p>Go on only if you have just started this yourself.</p>
!${form('allow', 'Allow')}
!${form('deny', 'Cancel')}`,
  })
}
