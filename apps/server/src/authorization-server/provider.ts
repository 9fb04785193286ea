import type Provider from 'oidc-provider'
import type { Configuration, KoaContextWithOIDC } from 'oidc-provider'
import type { Deps } from '../deps.ts'
import { createRateLimiter, type RateLimiter } from '../http/rate-limit.ts'
import { findOrCreateSecret } from '../server-secrets.ts'
import { accessTokenLifetimeSeconds } from '../sessions/access-tokens.ts'
import { findLiveSession, updateSessionExpiry } from '../sessions/queries.ts'
import type { SigningKey } from '../sessions/signing-keys.ts'
import { findUser } from '../users/queries.ts'
import { listClients } from './clients.ts'
import { deviceFlowPages, renderFault, renderLostForm, renderProviderError } from './device-pages.ts'
import { type BrowserSessions, createInteractionPolicy } from './interaction-policy.ts'
import { createRecords } from './records.ts'

/** Of one address. A sign-in takes about six. */
const requestsPerMinute = 300

const minute = 60
const day = 24 * 3600

/** A session of our own clients ends when it was not refreshed for this long. */
const clientSessionLifetimeMs = 30 * day * 1000

export type AuthorizationServer = {
  /** The library's provider, with the signing keys of now. */
  getProvider: () => Promise<Provider>
  browserSessions: BrowserSessions
  /** By address: almost every request here leaves a row before anybody has signed in. */
  rateLimiter: RateLimiter
}

/**
 * The standard flows for our own clients, by the library `oidc-provider`: authorization code with PKCE, device
 * authorization (RFC 8628), refresh, revocation, discovery. It is loaded at the first request that needs it.
 */
export function createAuthorizationServer(deps: Deps): AuthorizationServer {
  const browserSessions: BrowserSessions = new WeakMap()
  let built: { provider: Promise<Provider>; keys: SigningKey[]; kid: string } | undefined
  return {
    browserSessions,
    rateLimiter: createRateLimiter(deps.config.requestsPerMinute === undefined ? undefined : requestsPerMinute, {
      counts: deps.sharedCounts,
      name: 'authorization',
    }),
    async getProvider() {
      const [keys, { kid }] = [await deps.signingKeys.list(), await deps.signingKeys.current()]
      if (built?.keys !== keys || built.kid !== kid) {
        built = { keys, kid, provider: build(deps, browserSessions, keys, kid) }
        built.provider.catch(() => {
          built = undefined
        })
      }
      return await built.provider
    },
  }
}

async function build(
  deps: Deps,
  browserSessions: BrowserSessions,
  keys: SigningKey[],
  currentKid: string,
): Promise<Provider> {
  const [{ default: ProviderClass, errors, interactionPolicy }, cookieSecret] = await Promise.all([
    import('oidc-provider'),
    findOrCreateSecret(deps.db, { name: 'authorization-cookies' }),
  ])
  const provider = new ProviderClass(deps.config.publicUrl, {
    ...describeFlows(deps, currentKid),
    adapter: createRecords({ db: deps.db, clock: deps.clock, errors }),
    // The first key of an algorithm signs.
    jwks: { keys: keys.toSorted((a) => (a.kid === currentKid ? -1 : 1)).map(toPrivateJwk) },
    cookies: {
      keys: [cookieSecret.toString('base64url')],
      names: { session: 'godwit_oidc', interaction: 'godwit_interaction', resume: 'godwit_resume' },
      long: { signed: true, httpOnly: true, sameSite: 'lax', path: '/' },
      short: { signed: true, httpOnly: true, sameSite: 'lax', path: '/' },
    },
    interactions: {
      policy: createInteractionPolicy(browserSessions, interactionPolicy),
      url: (_ctx, interaction) => `${deps.config.publicUrl}/interaction/${interaction.uid}`,
    },
  })
  // Whatever proxies say, our URLs are those of GODWIT_PUBLIC_URL: `prepareRequest` sets the headers that are read.
  provider.proxy = true
  provider.use(answerFaults(deps))
  provider.on('server_error', (_ctx, error) => deps.log.error({ err: error }, 'authorization server'))
  return provider
}

/** What the library fails at is logged as ours is. To a device form without its session it gives a new one that it cannot keep. */
function answerFaults(deps: Deps) {
  return async (ctx: KoaContextWithOIDC, next: () => Promise<void>): Promise<void> => {
    try {
      await next()
    } catch (error) {
      const isLostForm = ctx.method === 'POST' && ctx.path === '/device'
      if (!isLostForm) deps.log.error({ err: error }, 'authorization server')
      ctx.status = isLostForm ? 400 : 500
      ctx.type = 'html'
      ctx.body = isLostForm ? renderLostForm() : renderFault()
    }
  }
}

function toPrivateJwk(key: SigningKey) {
  return { ...key.privateJwk, kty: 'RSA' as const, kid: key.kid, alg: 'RS256', use: 'sig' } as never
}

function describeFlows(deps: Deps, currentKid: string): Configuration {
  const { publicUrl } = deps.config
  return {
    clients: listClients(publicUrl),
    routes: {
      authorization: '/oauth/authorize',
      token: '/oauth/token',
      revocation: '/oauth/revoke',
      end_session: '/oauth/end-session',
      device_authorization: '/oauth/device',
      code_verification: '/device',
      jwks: '/.well-known/jwks.json',
    },
    scopes: ['openid', 'offline_access', 'email', 'profile'],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    responseTypes: ['code'],
    clientAuthMethods: ['none'],
    features: {
      devInteractions: { enabled: false },
      // Every access token is for the API, and not for this endpoint; `GET /api/v1/users/me` tells more.
      userinfo: { enabled: false },
      deviceFlow: { enabled: true, ...deviceFlowPages },
      revocation: { enabled: true, allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId },
      rpInitiatedLogout: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => publicUrl,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: '',
          audience: publicUrl,
          accessTokenFormat: 'jwt',
          accessTokenTTL: accessTokenLifetimeSeconds,
          jwt: { sign: { alg: 'RS256', kid: currentKid } },
        }),
      },
    },
    pkce: { required: () => true },
    clientBasedCORS: () => false,
    // Our sessions say how long a client stays signed in, not the library's browser session.
    expiresWithSession: () => false,
    issueRefreshToken: (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    ttl: {
      AccessToken: accessTokenLifetimeSeconds,
      AuthorizationCode: minute,
      DeviceCode: 10 * minute,
      IdToken: 15 * minute,
      Interaction: 30 * minute,
      Session: day,
      Grant: 400 * day,
      RefreshToken: clientSessionLifetimeMs / 1000,
    },
    loadExistingGrant: (ctx) => loadGrantOfThisInteraction(ctx),
    findAccount: async (_ctx, sub, token) => await findAccount(deps, sub, readGrantId(token)),
    extraTokenClaims: async (_ctx, token) => await describeSession(deps, readGrantId(token)),
    renderError: renderProviderError,
  }
}

/** Each sign-in of a client is a session of its own: a grant of before is never taken up again. */
async function loadGrantOfThisInteraction(ctx: KoaContextWithOIDC) {
  const grantId = ctx.oidc.result?.consent?.grantId
  return grantId === undefined ? undefined : await ctx.oidc.provider.Grant.find(grantId)
}

/** A grant's session has the grant's id. Once it has ended, nothing of the grant works any more. */
async function findAccount(deps: Deps, sub: string, grantId: string | undefined) {
  const user = /^\d{1,16}$/.test(sub) ? await findUser(deps.db, { id: Number(sub) }) : undefined
  if (user === undefined) return undefined
  if (grantId !== undefined && (await findLiveSession(deps.db, { id: grantId, now: deps.clock() })) === undefined) {
    return undefined
  }
  return {
    accountId: sub,
    claims: () => ({
      sub,
      email: user.email,
      email_verified: user.email_verified_at !== null,
      name: user.display_name ?? undefined,
    }),
  }
}

/** The claims of an access token that are ours; see `AccessTokenClaims`. Asked for at each issue: it keeps the session alive. */
async function describeSession(deps: Deps, grantId: string | undefined) {
  const now = deps.clock()
  const session = grantId === undefined ? undefined : await findLiveSession(deps.db, { id: grantId, now })
  if (session === undefined) return undefined
  await updateSessionExpiry(deps.db, {
    id: session.id,
    expiresAt: new Date(now.getTime() + clientSessionLifetimeMs),
  })
  return {
    sid: session.id,
    email: session.email,
    idp: session.issuer,
    ...(session.is_mfa === null ? {} : { is_mfa: session.is_mfa }),
    auth_time: Math.floor(session.created_at.getTime() / 1000),
  }
}

function readGrantId(token: unknown): string | undefined {
  const { grantId } = (token ?? {}) as { grantId?: unknown }
  return typeof grantId === 'string' ? grantId : undefined
}
