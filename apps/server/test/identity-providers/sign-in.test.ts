import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  type CookieBrowser,
  createCookieBrowser,
  type OpenIdProvider,
  type ProviderUser,
} from '../support/openid-provider.ts'
import type { TestService } from '../support/test-service.ts'
import { type SignInSetup, setUpSignIn } from './setup.ts'

let setup: SignInSetup
let service: TestService
let idp: OpenIdProvider
let browser: CookieBrowser

beforeAll(async () => {
  setup = await setUpSignIn({ isTwice: true })
  ;({ service, idp } = setup)
})
afterAll(() => setup.stop())
beforeEach(() => {
  setup.logged.length = 0
  browser = createCookieBrowser()
  idp.refuseWith(undefined)
})

function createUser(claims: Record<string, unknown> = {}): ProviderUser {
  const sub = randomUUID()
  return { sub, claims: { email: `${sub}@example.com`, email_verified: true, name: 'Ada Lovelace', ...claims } }
}

const startUrl = (returnTo = '/device?user_code=ABCD') =>
  `${service.baseUrl}/sign-in/with/oidc?${new URLSearchParams({ return_to: returnTo })}`
const isCallback = (url: URL) => url.pathname === '/sign-in/with/oidc/callback'

/** Signs in at the provider and stops before the callback is called. */
async function goToCallback(user: ProviderUser, by = browser): Promise<URL> {
  idp.logIn(user)
  return await by.follow(startUrl(), isCallback)
}

const findSession = async () => {
  const cookie = browser.cookies.get(service.baseUrl)?.get('godwit_session')
  if (cookie === undefined) return undefined
  return await service.deps.db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .selectAll('sessions')
    .select(['users.email', 'users.display_name'])
    .orderBy('sessions.created_at', 'desc')
    .executeTakeFirst()
}

async function signIn(user: ProviderUser) {
  const response = await browser.get(await goToCallback(user))
  return { response, session: await findSession() }
}

async function expectPage(response: Response, status: number, text: RegExp) {
  expect(response.status).toBe(status)
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
  const page = await response.text()
  expect(page).toMatch(text)
  expect(page).toContain('Back to sign-in')
}

describe('sign-in with an identity provider', () => {
  it('creates the account, keeps who vouched for it, and goes where the person wanted to go', async () => {
    const user = { ...createUser(), amr: ['pwd', 'otp'] }
    const { response, session } = await signIn(user)
    expect(response.status).toBe(303)
    expect(response.headers.get('location')).toBe('/device?user_code=ABCD')
    expect(session).toMatchObject({
      email: user.claims.email,
      display_name: 'Ada Lovelace',
      issuer: idp.issuer,
      is_mfa: true,
      client: 'browser',
    })
  })

  it('keeps apart that no second factor was used and that the provider did not say', async () => {
    expect((await signIn({ ...createUser(), amr: ['pwd'] })).session).toMatchObject({ is_mfa: false })
    browser = createCookieBrowser()
    expect((await signIn(createUser())).session).toMatchObject({ is_mfa: null })
  })

  it('asks for a code with PKCE, state and nonce, each new each time', async () => {
    const urls = [await browser.get(startUrl()), await browser.get(startUrl())].map(
      (response) => new URL(response.headers.get('location') ?? ''),
    )
    for (const { searchParams } of urls) {
      expect(Object.fromEntries(searchParams)).toEqual({
        client_id: 'godwit',
        response_type: 'code',
        redirect_uri: `${service.baseUrl}/sign-in/with/oidc/callback`,
        scope: 'openid email profile',
        code_challenge_method: 'S256',
        code_challenge: expect.stringMatching(/^[\w-]{43}$/),
        state: expect.stringMatching(/^[\w-]{43}$/),
        nonce: expect.stringMatching(/^[\w-]{43}$/),
      })
    }
    for (const name of ['state', 'nonce', 'code_challenge']) {
      expect(urls[0]?.searchParams.get(name)).not.toBe(urls[1]?.searchParams.get(name))
    }
  })

  it('gives the browser a cookie that no script reads, that lasts ten minutes and shows nothing', async () => {
    const response = await browser.get(startUrl())
    const [cookie = ''] = response.headers.getSetCookie()
    expect(cookie).toMatch(/^godwit_sign_in_[0-9a-f]{16}=[\w.-]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/)
    const [header = ''] = cookie.replace(/^[^=]*=/, '').split('.')
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toEqual({ alg: 'dir', enc: 'A256GCM' })
  })

  it('links the account that has the verified e-mail, and goes by the link when the e-mail has changed', async () => {
    const account = await service.createAccount()
    const user = createUser({ email: account.email })
    expect((await signIn(user)).session).toMatchObject({ user_id: account.userId })
    browser = createCookieBrowser()
    const renamed = { ...user, claims: { email: 'renamed@example.com', email_verified: false } }
    expect((await signIn(renamed)).session).toMatchObject({ user_id: account.userId })
  })

  it('links nothing, and creates nothing, by an e-mail that is not verified', async () => {
    const account = await service.createAccount()
    const user = createUser({ email: account.email, email_verified: false })
    const { response, session } = await signIn(user)
    await expectPage(response, 403, /does not say that the e-mail is yours/)
    expect(setup.logged).toContainEqual(expect.objectContaining({ subject: user.sub, msg: 'a sign-up was refused' }))
    expect(session).toBeUndefined()
    const links = await service.deps.db
      .selectFrom('user_identities')
      .selectAll()
      .where('subject', '=', user.sub)
      .execute()
    expect(links).toEqual([])
  })

  it('tells who is not invited so, where only the invited may come', async () => {
    const closed = await setUpSignIn({ config: { signUp: 'invited' } })
    closed.idp.logIn(createUser())
    const callback = await browser.follow(`${closed.service.baseUrl}/sign-in/with/oidc`, isCallback)
    await expectPage(await browser.get(callback), 403, /Only people who were invited/)
    expect(browser.cookies.get(closed.service.baseUrl)?.get('godwit_session')).toBeUndefined()
    await closed.stop()
  })

  it('asks the userinfo endpoint when the ID token has no e-mail', async () => {
    idp.putClaimsInIdToken(false)
    const user = createUser()
    const { session } = await signIn(user)
    idp.putClaimsInIdToken(true)
    expect(session).toMatchObject({ email: user.claims.email, display_name: 'Ada Lovelace' })
    expect(idp.requests).toContain('/me')
  })

  it('goes nowhere but to this server', async () => {
    for (const target of ['https://evil.example/', '//evil.example', '/\\evil.example']) {
      browser = createCookieBrowser()
      idp.logIn(createUser())
      const response = await browser.get(await browser.follow(startUrl(target), isCallback))
      expect(response.status).toBe(303)
      expect(response.headers.get('location')).toBe('/account')
    }
  })

  it('lets two tabs sign in at once', async () => {
    const user = createUser()
    const first = await goToCallback(user)
    const second = await goToCallback(user)
    expect((await browser.get(second)).status).toBe(303)
    expect((await browser.get(first)).status).toBe(303)
  })

  it('keeps the cookies of no more than five sign-ins that are under way', async () => {
    const names = () => [...(browser.cookies.get(service.baseUrl)?.keys() ?? [])]
    for (let index = 0; index < 5; index += 1) await browser.get(startUrl())
    const before = names()
    await browser.get(startUrl())
    expect(names()).toHaveLength(5)
    expect(names().slice(0, 4)).toEqual(before.slice(1))
  })

  it('ends the session that the browser had, and gives it another cookie', async () => {
    const first = await signIn(createUser())
    const planted = browser.cookies.get(service.baseUrl)?.get('godwit_session')
    await signIn(createUser())
    expect(browser.cookies.get(service.baseUrl)?.get('godwit_session')).not.toBe(planted)
    const row = await service.deps.db
      .selectFrom('sessions')
      .select('revoked_at')
      .where('id', '=', String(first.session?.id))
      .executeTakeFirst()
    expect(row?.revoked_at).toBeInstanceOf(Date)
  })

  it('is a 404 for a provider that is not configured', async () => {
    await expectPage(
      await browser.get(`${service.baseUrl}/sign-in/with/microsoft`),
      404,
      /no sign-in with this provider/,
    )
    await expectPage(await browser.get(`${service.baseUrl}/sign-in/with/microsoft/callback`), 404, /no sign-in/)
  })
})

describe('a callback that is not what the browser left for', () => {
  const expectLogged = (tried: RegExp) =>
    expect(setup.logged).toContainEqual(expect.objectContaining({ level: 40, tried: expect.stringMatching(tried) }))

  it('is refused when it comes a second time', async () => {
    const callback = await goToCallback(createUser())
    expect((await browser.get(callback)).status).toBe(303)
    await expectPage(await browser.get(callback), 400, /no longer valid/)
    expectLogged(/without its cookie/)
  })

  it('is refused when code, state and cookie are all kept and sent again', async () => {
    const callback = await goToCallback(createUser())
    const kept = new Map(browser.cookies.get(service.baseUrl))
    expect((await browser.get(callback)).status).toBe(303)
    browser.cookies.set(service.baseUrl, kept)
    await expectPage(await browser.get(callback), 400, /did not confirm this sign-in/)
    expectLogged(/not good/)
  })

  it('is refused in the browser of somebody else', async () => {
    const callback = await goToCallback(createUser())
    browser = createCookieBrowser()
    await expectPage(await browser.get(callback), 400, /begun in another browser/)
    expectLogged(/without its cookie/)
    expect(await findSession()).toBeUndefined()
  })

  it("is refused with the code of somebody else's sign-in", async () => {
    const foreign = await goToCallback(createUser(), createCookieBrowser())
    const callback = await goToCallback(createUser())
    callback.searchParams.set('code', foreign.searchParams.get('code') ?? '')
    await expectPage(await browser.get(callback), 400, /did not confirm this sign-in/)
    expect(await findSession()).toBeUndefined()
  })

  it('is refused with another state, or two, or none', async () => {
    const callback = await goToCallback(createUser())
    const state = callback.searchParams.get('state') ?? ''
    for (const change of [
      (url: URL) => url.searchParams.set('state', 'x'),
      (url: URL) => url.searchParams.append('state', state),
      (url: URL) => url.searchParams.delete('state'),
    ]) {
      const url = new URL(callback)
      change(url)
      await expectPage(await browser.get(url), 400, /no longer valid/)
    }
    expectLogged(/without its cookie/)
  })

  it('is refused when the ID token was made for another request: its nonce is not ours', async () => {
    idp.logIn(createUser())
    const request = new URL((await browser.get(startUrl())).headers.get('location') ?? '')
    request.searchParams.set('nonce', 'of-somebody-else')
    const callback = await browser.follow(request, isCallback)
    await expectPage(await browser.get(callback), 400, /did not confirm this sign-in/)
    expectLogged(/an answer that is not good/)
    expect(await findSession()).toBeUndefined()
  })

  it('is refused when the code was asked for with another PKCE challenge', async () => {
    idp.logIn(createUser())
    const request = new URL((await browser.get(startUrl())).headers.get('location') ?? '')
    request.searchParams.set('code_challenge', 'a'.repeat(43))
    const callback = await browser.follow(request, isCallback)
    await expectPage(await browser.get(callback), 400, /did not confirm this sign-in/)
    expectLogged(/invalid_grant/)
  })

  it('is refused with the cookie of another sign-in under the name of this one', async () => {
    const first = await goToCallback(createUser())
    const jar = browser.cookies.get(service.baseUrl) ?? new Map()
    const [[name, value] = ['', '']] = jar
    const second = await goToCallback(createUser())
    const other = [...jar.keys()].find((key) => key !== name) ?? ''
    jar.set(other, value)
    await expectPage(await browser.get(second), 400, /no longer valid/)
    expect(first.searchParams.get('state')).not.toBe(second.searchParams.get('state'))
  })

  it('is refused at the callback of another provider', async () => {
    const callback = await goToCallback(createUser())
    callback.pathname = '/sign-in/with/google/callback'
    await expectPage(await browser.get(callback), 400, /no longer valid/)
    expectLogged(/of another provider/)
  })

  it('is refused with a cookie that was altered', async () => {
    const callback = await goToCallback(createUser())
    const jar = browser.cookies.get(service.baseUrl) ?? new Map()
    for (const [name, value] of jar) jar.set(name, `${value.slice(0, -2)}${value.endsWith('AA') ? 'BB' : 'AA'}`)
    await expectPage(await browser.get(callback), 400, /no longer valid/)
  })

  it('is refused after ten minutes', async () => {
    const callback = await goToCallback(createUser())
    setup.setClockAhead(601)
    const response = await browser.get(callback)
    setup.setClockAhead(0)
    await expectPage(response, 400, /no longer valid/)
  })

  it('is a page that says so when the person cancelled at the provider', async () => {
    idp.refuseWith('access_denied')
    const callback = await goToCallback(createUser())
    expect(callback.searchParams.get('error')).toBe('access_denied')
    const response = await browser.get(callback)
    expect(response.headers.getSetCookie().join()).toMatch(/godwit_sign_in_\w+=;/)
    await expectPage(response, 403, /Example SSO did not sign you in/)
  })

  it('puts no secret into the log', async () => {
    const callback = await goToCallback(createUser())
    const secrets = [callback.searchParams.get('code'), callback.searchParams.get('state')]
    await browser.get(callback)
    await browser.get(callback)
    expect(setup.logged.length).toBeGreaterThan(0)
    for (const secret of secrets) expect(JSON.stringify(setup.logged)).not.toContain(secret)
  })
})
