import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose'
import { Provider } from 'oidc-provider'
import { findFreePort } from '../../src/embedded-postgres/launch.ts'

/** Somebody whom the provider knows. */
export type ProviderUser = {
  sub: string
  /** Claims of the ID token. */
  claims: Record<string, unknown>
  /** How they log in (RFC 8176). */
  amr?: string[]
}

export type OpenIdProvider = {
  issuer: string
  client: { id: string; secret: string }
  /** Another client of the same provider: its tokens are not for us. */
  otherClient: { id: string; secret: string }
  /** Paths of the requests that came, with their query. */
  requests: string[]
  keys: JWK[]
  /** Logs in whoever comes from now on, without asking anything. */
  logIn: (user: ProviderUser) => void
  /** What the provider answers to the next authorization requests instead of asking: a code of RFC 6749, 4.1.2.1. */
  refuseWith: (error: string | undefined) => void
  /** Whether the ID token has the e-mail, or only the userinfo endpoint. */
  putClaimsInIdToken: (isInIdToken: boolean) => void
  allowRedirectTo: (uri: string) => void
  /** Replaces all keys, or publishes a new one before them. */
  rotateKeys: (options: { keepOld: boolean }) => Promise<void>
  /** An ID token from a sign-in of the user with that client, through the whole protocol. */
  issueIdToken: (user: ProviderUser, client?: { id: string; secret: string }) => Promise<string>
  /** A token with any claims, under the provider's own key. */
  sign: (claims: JWTPayload, header?: Partial<JWTHeaderParameters>) => Promise<string>
  start: () => Promise<void>
  stop: () => Promise<void>
}

const clientRedirectUri = 'http://127.0.0.1:9/callback'

/** A certified OpenID Connect provider (oidc-provider) on a port of its own. It insists on PKCE. */
export async function startOpenIdProvider(): Promise<OpenIdProvider> {
  const port = await findFreePort()
  const issuer = `http://127.0.0.1:${port}`
  const state = {
    keys: [await createKey()],
    redirectUris: [clientRedirectUri],
    isInIdToken: true,
    error: undefined as string | undefined,
    user: { sub: 'nobody', claims: {} } as ProviderUser,
    users: new Map<string, ProviderUser>(),
  }
  const client = { id: 'godwit', secret: 'the-secret-of-godwit-at-the-provider' }
  const otherClient = { id: 'another-service', secret: 'the-secret-of-another-service' }
  const requests: string[] = []
  let serve = createHandler()

  function createHandler() {
    const provider = silently(() => new Provider(issuer, configure()))
    const callback = provider.callback()
    return async (request: IncomingMessage, response: ServerResponse) => {
      if (!request.url?.startsWith('/interaction/')) return callback(request, response)
      const result =
        state.error === undefined
          ? { login: { accountId: state.user.sub, amr: state.user.amr } }
          : { error: state.error, error_description: 'as the test wants it' }
      await provider.interactionFinished(request, response, result)
    }
  }

  function configure(): ConstructorParameters<typeof Provider>[1] {
    const common = { redirect_uris: state.redirectUris, response_types: ['code' as const] }
    return {
      clients: [client, otherClient].map(({ id, secret }) => ({ ...common, client_id: id, client_secret: secret })),
      jwks: { keys: state.keys },
      cookies: { keys: ['not a secret'] },
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false } },
      conformIdTokenClaims: !state.isInIdToken,
      claims: { openid: ['sub', 'amr', 'xms_edov'], email: ['email', 'email_verified'], profile: ['name'] },
      ttl: { IdToken: 3600, AccessToken: 3600, Session: 3600, Grant: 3600, Interaction: 600 },
      interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
      findAccount: (_context, sub) => {
        const user = state.users.get(sub)
        return user && { accountId: sub, claims: async () => ({ sub, ...user.claims }) }
      },
      // A sign-in in another tab of the browser ends none.
      expiresWithSession: () => false,
      // Nobody is asked for consent.
      loadExistingGrant: async ({ oidc }) => {
        const grant = new oidc.provider.Grant({ accountId: oidc.session?.accountId, clientId: oidc.client?.clientId })
        grant.addOIDCScope('openid email profile')
        await grant.save()
        return grant
      },
    }
  }

  const openServer = () =>
    createServer((request, response) => {
      requests.push(request.url ?? '')
      void serve(request, response)
    })
  let server = openServer()
  const start = async () => {
    server = openServer()
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  }
  const logIn = (user: ProviderUser) => {
    state.user = user
    state.users.set(user.sub, user)
  }
  await start()

  return {
    issuer,
    client,
    otherClient,
    requests,
    get keys() {
      return state.keys
    },
    logIn,
    refuseWith(error) {
      state.error = error
    },
    putClaimsInIdToken(isInIdToken) {
      state.isInIdToken = isInIdToken
      serve = createHandler()
    },
    allowRedirectTo(uri) {
      state.redirectUris.push(uri)
      serve = createHandler()
    },
    async rotateKeys({ keepOld }) {
      state.keys = [await createKey(), ...(keepOld ? state.keys : [])]
      serve = createHandler()
    },
    async issueIdToken(user, as = client) {
      logIn(user)
      return await signInAsClient(issuer, as)
    },
    async sign(claims, header = {}) {
      const [key] = state.keys
      if (key === undefined) throw new Error('the provider has no key')
      return await new SignJWT(claims)
        .setProtectedHeader({ alg: 'RS256', kid: String(key.kid), ...header })
        .sign(await importJWK(key, 'RS256'))
    },
    start,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function createKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return { ...(await exportJWK(privateKey)), kid: crypto.randomUUID(), alg: 'RS256', use: 'sig' }
}

/** It warns of everything that makes it unfit for production, in a test that wants just that. */
function silently<T>(make: () => T): T {
  const { warn, info } = console
  console.warn = () => {}
  console.info = () => {}
  try {
    return make()
  } finally {
    console.warn = warn
    console.info = info
  }
}

/** The authorization code flow as any client of the provider does it. */
async function signInAsClient(issuer: string, client: { id: string; secret: string }): Promise<string> {
  const verifier = 'v'.repeat(43)
  const challenge = Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(verifier))).toString('base64url')
  const browser = createCookieBrowser()
  const url = new URL(`${issuer}/auth`)
  url.search = new URLSearchParams({
    client_id: client.id,
    response_type: 'code',
    redirect_uri: clientRedirectUri,
    scope: 'openid email profile',
    code_challenge: challenge,
    code_challenge_method: 'S256',
  }).toString()
  const back = await browser.follow(url, (to) => to.href.startsWith(clientRedirectUri))
  const response = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}` },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: back.searchParams.get('code') ?? '',
      redirect_uri: clientRedirectUri,
      code_verifier: verifier,
    }),
  })
  const { id_token: idToken } = (await response.json()) as { id_token?: string }
  if (idToken === undefined) throw new Error(`the provider answered ${response.status} and no ID token`)
  return idToken
}

export type CookieBrowser = {
  /** Cookies by origin, then by name. */
  cookies: Map<string, Map<string, string>>
  get: (url: URL | string) => Promise<Response>
  /** Follows redirects up to the first address that `isEnd` takes, which is not asked. */
  follow: (url: URL | string, isEnd: (url: URL) => boolean) => Promise<URL>
}

/** What a browser does with cookies and redirects, as far as a sign-in needs it. */
export function createCookieBrowser(): CookieBrowser {
  const cookies: CookieBrowser['cookies'] = new Map()
  const get = async (address: URL | string) => {
    const url = new URL(address)
    const jar = cookies.get(url.origin) ?? new Map<string, string>()
    cookies.set(url.origin, jar)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: cookie === '' ? {} : { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      const expires = /expires=([^;]+)/i.exec(line)?.[1]
      const isOver = /max-age=0(;|$)/i.test(line) || (expires !== undefined && Date.parse(expires) <= Date.now())
      if (isOver) jar.delete(name)
      else jar.set(name, value)
    }
    return response
  }
  return {
    cookies,
    get,
    async follow(address, isEnd) {
      let url = new URL(address)
      for (let step = 0; step < 10; step += 1) {
        if (isEnd(url)) return url
        const response = await get(url)
        const location = response.headers.get('location')
        if (location === null) throw new Error(`${url.pathname} answered ${response.status}: ${await response.text()}`)
        url = new URL(location, url)
      }
      throw new Error('too many redirects')
    },
  }
}
