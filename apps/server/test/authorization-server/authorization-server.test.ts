import { decodeJwt } from 'jose'
import * as openid from 'openid-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { consoleClientId, nativeClientId } from '../../src/authorization-server/clients.ts'
import { startBrowserSession } from '../../src/sessions/actions.ts'
import { listLiveSessions, revokeSession } from '../../src/sessions/queries.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

const redirectUri = 'http://127.0.0.1:53682/callback'

let service: TestService
let account: TestAccount

beforeAll(async () => {
  service = await createTestService()
  account = await service.createAccount()
})
afterAll(() => service.stop())

/** Our server as a standard client finds it: by discovery, with a client library that knows nothing of Godwit. */
async function discover(clientId: string): Promise<openid.Configuration> {
  const options = { execute: [openid.allowInsecureRequests] }
  return await openid.discovery(new URL(service.baseUrl), clientId, undefined, openid.None(), options)
}

/** As much of a browser as the flows need: cookies, and redirects as long as they stay on the server. */
function createBrowser() {
  const cookies = new Map<string, string>()
  const send = async (url: string, form?: Record<string, string>): Promise<Response> => {
    const response = await fetch(new URL(url, service.baseUrl), {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) return response
    return new URL(location, service.baseUrl).origin === service.baseUrl ? await send(location) : response
  }
  /** Sends the form of a page as it is, with the button that was pressed. */
  const submit = async (page: Response, button: Record<string, string>): Promise<Response> => {
    const html = await page.text()
    const action = /<form method="post" action="([^"]+)"/.exec(html)?.[1] ?? ''
    const hidden = Array.from(html.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g), ([, name, value]) => [
      name,
      value,
    ])
    return await send(action, { ...Object.fromEntries(hidden), ...button })
  }
  const signIn = async (holder: TestAccount = account) => {
    const signedIn = {
      userId: holder.userId,
      issuer: 'https://idp.example',
      isMfa: true,
      userAgent: null,
      address: null,
    }
    const { id, cookie } = await startBrowserSession(service.deps.db, { ...signedIn, now: new Date() })
    cookies.set('godwit_session', cookie)
    return id
  }
  return { send, submit, signIn, cookies }
}

type Browser = ReturnType<typeof createBrowser>

async function startAuthorization(clientId: string, uri: string, scope = 'openid email offline_access') {
  const configuration = await discover(clientId)
  const verifier = openid.randomPKCECodeVerifier()
  const state = openid.randomState()
  const url = openid.buildAuthorizationUrl(configuration, {
    redirect_uri: uri,
    scope,
    state,
    code_challenge: await openid.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })
  const exchange = (location: string) =>
    openid.authorizationCodeGrant(configuration, new URL(location), {
      pkceCodeVerifier: verifier,
      expectedState: state,
    })
  return { configuration, url: url.href, exchange }
}

async function signInNatively(browser: Browser) {
  const { configuration, url, exchange } = await startAuthorization(nativeClientId, redirectUri)
  const consent = await browser.send(url)
  expect(consent.status).toBe(200)
  const done = await browser.submit(consent, { decision: 'allow' })
  return { configuration, tokens: await exchange(done.headers.get('location') ?? '') }
}

const whoAmI = (token: string) => service.client(token).getCurrentUser()

describe('the discovery document', () => {
  it('names what standard clients need, all of it under the public URL', async () => {
    const metadata = (await discover(nativeClientId)).serverMetadata()
    expect(metadata.issuer).toBe(service.baseUrl)
    expect(metadata.code_challenge_methods_supported).toEqual(['S256'])
    expect(metadata.grant_types_supported).toEqual(
      expect.arrayContaining(['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code']),
    )
    const endpoints = Object.entries(metadata).filter(([name]) => /_(endpoint|uri)$/.test(name))
    expect(endpoints.length).toBeGreaterThan(4)
    for (const [, url] of endpoints) expect(String(url)).toMatch(new RegExp(`^${service.baseUrl}/`))
  })

  it('names the public URL also when a proxy forwards under another host', async () => {
    const response = await fetch(`${service.baseUrl}/.well-known/openid-configuration`, {
      headers: { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' },
    })
    expect(JSON.stringify(await response.json())).not.toContain('evil.example')
  })
})

describe('the authorization code flow', () => {
  it('asks for consent, and gives tokens that work at the API', async () => {
    const browser = createBrowser()
    await browser.signIn()
    const { tokens } = await signInNatively(browser)
    expect(tokens.expires_in).toBe(900)
    const claims = decodeJwt(tokens.access_token)
    expect(claims).toMatchObject({
      iss: service.baseUrl,
      aud: service.baseUrl,
      sub: String(account.userId),
      email: account.email,
      idp: 'https://idp.example',
      is_mfa: true,
    })
    expect(await whoAmI(tokens.access_token)).toMatchObject({ id: account.userId })
    expect(tokens.claims()).toMatchObject({ sub: String(account.userId), aud: nativeClientId })
    const sessions = await listLiveSessions(service.deps.db, { userId: account.userId, now: new Date() })
    expect(sessions.find(({ id }) => id === claims.sid)).toMatchObject({ client: nativeClientId })
  })

  it('sends somebody who is not signed in to sign in, and then goes on', async () => {
    const browser = createBrowser()
    const { url } = await startAuthorization(nativeClientId, redirectUri)
    const page = await browser.send(url)
    expect(page.url).toContain('/sign-in?return_to=%2Finteraction%2F')
    await browser.signIn()
    const next = await browser.send(new URL(page.url).searchParams.get('return_to') ?? '')
    expect(await next.text()).toContain(account.email)
  })

  it('does not ask before signing in to the console of the service itself', async () => {
    const browser = createBrowser()
    await browser.signIn()
    const { url, exchange } = await startAuthorization(consoleClientId, `${service.baseUrl}/console/callback`)
    const end = await browser.send(url)
    expect(new URL(end.url).pathname).toBe('/console/callback')
    const tokens = await exchange(end.url)
    expect(await whoAmI(tokens.access_token)).toMatchObject({ id: account.userId })
  })

  it('brings a refusal back to the client', async () => {
    const browser = createBrowser()
    await browser.signIn()
    const { url, exchange } = await startAuthorization(nativeClientId, redirectUri)
    const done = await browser.submit(await browser.send(url), { decision: 'deny' })
    await expect(exchange(done.headers.get('location') ?? '')).rejects.toMatchObject({ error: 'access_denied' })
  })

  it.each([
    ['another host', 'https://evil.example/callback'],
    ['another path', 'http://127.0.0.1:1/other'],
    ['localhost by name, which others may answer', 'http://localhost:1/callback'],
  ])('does not lead to %s', async (_name, uri) => {
    const browser = createBrowser()
    await browser.signIn()
    const { url } = await startAuthorization(nativeClientId, uri)
    const answer = await browser.send(url)
    expect(answer.status).toBe(400)
    expect(answer.headers.get('location')).toBeNull()
  })

  it('needs PKCE, and the verifier that belongs to it', async () => {
    const browser = createBrowser()
    await browser.signIn()
    const plain = new URL('/oauth/authorize', service.baseUrl)
    plain.search = new URLSearchParams({
      client_id: nativeClientId,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: 'openid',
    }).toString()
    const refused = await browser.send(plain.href)
    expect(refused.headers.get('location')).toContain('error=invalid_request')
    const { configuration, url } = await startAuthorization(nativeClientId, redirectUri)
    const done = await browser.submit(await browser.send(url), { decision: 'allow' })
    const stolen = openid.authorizationCodeGrant(configuration, new URL(done.headers.get('location') ?? ''), {
      pkceCodeVerifier: openid.randomPKCECodeVerifier(),
      expectedState: openid.skipStateCheck,
    })
    await expect(stolen).rejects.toMatchObject({ error: 'invalid_grant' })
  })

  it('takes a code once, also from many at once, and ends what came of it when it comes again', async () => {
    const browser = createBrowser()
    await browser.signIn()
    const { url, exchange } = await startAuthorization(nativeClientId, redirectUri)
    const done = await browser.submit(await browser.send(url), { decision: 'allow' })
    const location = done.headers.get('location') ?? ''
    const outcomes = await Promise.allSettled([exchange(location), exchange(location), exchange(location)])
    const good = outcomes.filter((outcome) => outcome.status === 'fulfilled')
    expect(good).toHaveLength(1)
    await expect(exchange(location)).rejects.toMatchObject({ error: 'invalid_grant' })
    const token = good[0]?.value.access_token ?? ''
    await expect(whoAmI(token)).rejects.toMatchObject({ status: 401 })
  })

  it('asks again, and not in the name of the one before, when somebody else has signed in to the browser', async () => {
    const browser = createBrowser()
    await browser.signIn()
    await signInNatively(browser)
    const other = await service.createAccount()
    await browser.signIn(other)
    const { tokens } = await signInNatively(browser)
    expect(decodeJwt(tokens.access_token).sub).toBe(String(other.userId))
  })

  it('knows nobody any more once the browser has signed out', async () => {
    const browser = createBrowser()
    const id = await browser.signIn()
    await signInNatively(browser)
    await revokeSession(service.deps.db, { id, at: new Date() })
    const { url } = await startAuthorization(nativeClientId, redirectUri)
    expect((await browser.send(url)).url).toContain('/sign-in')
  })

  it('needs the scope openid, and says so instead of asking for a consent that grants nothing', async () => {
    const browser = createBrowser()
    const signedIn = await service.createAccount()
    await browser.signIn(signedIn)
    const { url } = await startAuthorization(nativeClientId, redirectUri, 'email')
    const answer = await browser.send(url)
    expect(answer.headers.get('location')).toContain('error=invalid_scope')
    const sessions = await listLiveSessions(service.deps.db, { userId: signedIn.userId, now: new Date() })
    expect(sessions.filter(({ client }) => client === nativeClientId)).toEqual([])
  })

  it('leaves no session of a code that nobody redeems', async () => {
    const browser = createBrowser()
    const signedIn = await service.createAccount()
    await browser.signIn(signedIn)
    const { url } = await startAuthorization(consoleClientId, `${service.baseUrl}/console/callback`)
    await browser.send(url)
    const later = new Date(Date.now() + 11 * 60_000)
    const sessions = await listLiveSessions(service.deps.db, { userId: signedIn.userId, now: later })
    expect(sessions.map(({ client }) => client)).toEqual(['browser'])
  })

  it('takes no consent that another site sent', async () => {
    const browser = createBrowser()
    await browser.signIn()
    const { url } = await startAuthorization(nativeClientId, redirectUri)
    const { pathname } = new URL((await browser.send(url)).url)
    expect((await browser.send(pathname, { decision: 'allow' })).status).toBe(403)
  })

  it("does not take an interaction that began in another's browser", async () => {
    const victim = createBrowser()
    await victim.signIn()
    const attacker = createBrowser()
    await attacker.signIn(await service.createAccount())
    const { url } = await startAuthorization(nativeClientId, redirectUri)
    const { pathname } = new URL((await attacker.send(url)).url)
    expect((await victim.send(pathname)).status).toBe(404)
  })
})

describe('refresh tokens of our own clients', () => {
  it('rotate, and a second use of one ends the session', async () => {
    const browser = createBrowser()
    await browser.signIn()
    const { configuration, tokens } = await signInNatively(browser)
    const next = await openid.refreshTokenGrant(configuration, tokens.refresh_token ?? '')
    expect(next.refresh_token).not.toBe(tokens.refresh_token)
    expect(await whoAmI(next.access_token)).toMatchObject({ id: account.userId })
    await expect(openid.refreshTokenGrant(configuration, tokens.refresh_token ?? '')).rejects.toMatchObject({
      error: 'invalid_grant',
    })
    await expect(openid.refreshTokenGrant(configuration, next.refresh_token ?? '')).rejects.toThrow()
    await expect(whoAmI(next.access_token)).rejects.toMatchObject({ status: 401 })
  })

  it('end with the session', async () => {
    const browser = createBrowser()
    await browser.signIn()
    const { configuration, tokens } = await signInNatively(browser)
    await revokeSession(service.deps.db, { id: String(decodeJwt(tokens.access_token).sid), at: new Date() })
    await expect(whoAmI(tokens.access_token)).rejects.toMatchObject({ status: 401 })
    await expect(openid.refreshTokenGrant(configuration, tokens.refresh_token ?? '')).rejects.toMatchObject({
      error: 'invalid_grant',
    })
  })

  it('can be revoked by the client, which ends the session', async () => {
    const browser = createBrowser()
    await browser.signIn()
    const { configuration, tokens } = await signInNatively(browser)
    await openid.tokenRevocation(configuration, tokens.refresh_token ?? '')
    await expect.poll(() => whoAmI(tokens.access_token).catch((error) => error.status)).toBe(401)
  })

  it('are stored as hashes, like codes', async () => {
    const browser = createBrowser()
    await browser.signIn()
    const { tokens } = await signInNatively(browser)
    const rows = await service.deps.db.selectFrom('authorization_records').selectAll().execute()
    expect(rows.some(({ model }) => model === 'RefreshToken')).toBe(true)
    expect(JSON.stringify(rows)).not.toContain(tokens.refresh_token)
  })
})

describe('the device flow', () => {
  it('signs in a device that shows a code', async () => {
    const browser = createBrowser()
    await browser.signIn()
    const configuration = await discover(nativeClientId)
    const started = await openid.initiateDeviceAuthorization(configuration, { scope: 'openid offline_access' })
    const poll = openid.pollDeviceAuthorizationGrant(configuration, { ...started, interval: 0.1 })
    const input = await browser.send(started.verification_uri_complete ?? '')
    expect(await input.clone().text()).toContain(`value="${started.user_code}"`)
    const confirm = await browser.submit(input, { user_code: started.user_code })
    expect(await confirm.clone().text()).toContain(started.user_code)
    const consent = await browser.submit(confirm, {})
    expect(await consent.clone().text()).toContain(account.email)
    const success = await browser.submit(consent, { decision: 'allow' })
    expect(await success.text()).toContain('close this page')
    const tokens = await poll
    expect(await whoAmI(tokens.access_token)).toMatchObject({ id: account.userId })
  })

  it('refuses a wrong code, and lets the person cancel', async () => {
    const browser = createBrowser()
    await browser.signIn()
    const wrong = await browser.submit(await browser.send('/device'), { user_code: 'BCDF-GHJK' })
    expect(await wrong.text()).toContain('wrong or has expired')
    const configuration = await discover(nativeClientId)
    const started = await openid.initiateDeviceAuthorization(configuration, {})
    const confirm = await browser.submit(await browser.send('/device'), { user_code: started.user_code })
    await browser.submit(confirm, { abort: 'yes' })
    const poll = openid.pollDeviceAuthorizationGrant(configuration, { ...started, interval: 0.1 })
    await expect(poll).rejects.toMatchObject({ error: 'access_denied' })
  })

  it('answers with pages that need no script and are shown in no frame', async () => {
    const { headers } = await fetch(`${service.baseUrl}/device`)
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  })
})

describe('an ID token of ours', () => {
  it('is no access token', async () => {
    const browser = createBrowser()
    await browser.signIn()
    const { tokens } = await signInNatively(browser)
    await expect(whoAmI(tokens.id_token ?? '')).rejects.toMatchObject({ status: 401 })
  })
})
