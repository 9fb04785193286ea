import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { html } from 'ghtml'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { toAppError } from '../http/error-handler.ts'
import { signInBrowser } from '../sign-in/browser-session.ts'
import { chooseReturnTo } from '../sign-in/return-to.ts'
import { sendPage } from '../sign-in/scope.ts'
import { beginSignIn, finishSignIn } from './actions.ts'
import type { IdentityProvider } from './identity-provider.ts'
import {
  nameTransactionCookie,
  openTransaction,
  type SignInTransaction,
  transactionCookiePrefix,
  transactionLifetimeSeconds,
} from './sign-in-transactions.ts'

/** Sign-ins that are under way in one browser at once. More cookies would make its requests too large to be read. */
const maxTransactions = 5

type ProviderRequest = FastifyRequest<{ Params: { providerId: string }; Querystring: Record<string, unknown> }>

/** Sign-in with an identity provider: the way there, and back. */
export function registerIdentityProviderPages(app: FastifyInstance, deps: Deps): void {
  const path = '/sign-in/with/:providerId'
  // HEAD would redeem the code and answer nothing.
  const options = { exposeHeadRoute: false }
  app.get(path, options, async (request: ProviderRequest, reply) => {
    const returnTo = chooseReturnTo(deps.config.publicUrl, request.query.return_to)
    try {
      return await leave(deps, request, reply, returnTo)
    } catch (error) {
      return sendRefusal(error, request, reply, returnTo)
    }
  })
  app.get(`${path}/callback`, options, async (request: ProviderRequest, reply) => {
    const transaction = await takeTransaction(deps, request, reply)
    const returnTo = transaction?.returnTo ?? chooseReturnTo(deps.config.publicUrl, undefined)
    try {
      return await comeBack(deps, request, reply, transaction)
    } catch (error) {
      return sendRefusal(error, request, reply, returnTo)
    }
  })
}

async function leave(
  deps: Deps,
  request: ProviderRequest,
  reply: FastifyReply,
  returnTo: string,
): Promise<FastifyReply> {
  const { url, state, sealed } = await beginSignIn(deps, findProvider(deps, request), { returnTo })
  const { publicUrl } = deps.config
  // Browsers send the oldest first (RFC 6265, 5.4).
  const names = Object.keys(request.cookies).filter((name) => name.startsWith(transactionCookiePrefix(publicUrl)))
  for (const name of names.slice(0, Math.max(0, names.length - maxTransactions + 1))) {
    reply.clearCookie(name, cookieOptions(deps))
  }
  reply.setCookie(nameTransactionCookie(publicUrl, state), sealed, {
    ...cookieOptions(deps),
    maxAge: transactionLifetimeSeconds,
  })
  return reply.redirect(url.href, 303)
}

async function comeBack(
  deps: Deps,
  request: ProviderRequest,
  reply: FastifyReply,
  transaction: SignInTransaction | undefined,
): Promise<FastifyReply> {
  const provider = findProvider(deps, request)
  if (transaction?.providerId !== provider.config.id || transaction.state !== request.query.state) {
    const tried = transaction === undefined ? 'a callback without its cookie' : 'a callback of another provider'
    request.log.warn({ provider: provider.config.id, tried, address: request.ip }, 'refused a sign-in')
    throw new AppError('invalid_request', 'This sign-in is no longer valid, or it was begun in another browser.')
  }
  const { search } = new URL(request.url, deps.config.publicUrl)
  const signIn = await finishSignIn(deps, provider, { search, transaction })
  await signInBrowser(deps, request, reply, signIn)
  return reply.redirect(transaction.returnTo, 303)
}

/** What the browser was given when it left. Its cookie ends here, whatever comes of it. */
async function takeTransaction(
  deps: Deps,
  request: ProviderRequest,
  reply: FastifyReply,
): Promise<SignInTransaction | undefined> {
  const { state } = request.query
  if (typeof state !== 'string') return undefined
  const name = nameTransactionCookie(deps.config.publicUrl, state)
  const cookie = request.cookies[name]
  if (cookie === undefined) return undefined
  reply.clearCookie(name, cookieOptions(deps))
  return await openTransaction(deps, cookie)
}

function findProvider(deps: Deps, request: ProviderRequest): IdentityProvider {
  const provider = deps.identityProviders.find(({ config }) => config.id === request.params.providerId)
  if (provider === undefined) throw new AppError('not_found', 'There is no sign-in with this provider here.')
  return provider
}

function cookieOptions(deps: Deps) {
  return { path: '/', httpOnly: true, secure: deps.config.publicUrl.startsWith('https:'), sameSite: 'lax' } as const
}

function sendRefusal(error: unknown, request: FastifyRequest, reply: FastifyReply, returnTo: string): FastifyReply {
  const { status, details, message, retryAfterSeconds } = toAppError(error, request)
  if (retryAfterSeconds !== undefined) reply.header('retry-after', retryAfterSeconds)
  const again = `/sign-in?${new URLSearchParams({ return_to: returnTo })}`
  return sendPage(reply, {
    status,
    title: 'You are not signed in',
    error: details ?? message,
    body: html`<p><a href="${again}">Back to sign-in</a></p>`,
  })
}
