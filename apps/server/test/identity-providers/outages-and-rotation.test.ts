import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createCookieBrowser, type OpenIdProvider, type ProviderUser } from '../support/openid-provider.ts'
import type { TestService } from '../support/test-service.ts'
import { type SignInSetup, setUpSignIn } from './setup.ts'

let setup: SignInSetup
let service: TestService
let idp: OpenIdProvider

beforeEach(async () => {
  setup = await setUpSignIn()
  ;({ service, idp } = setup)
  // Only the date: the library that keeps the keys goes by it, and so does the provider.
  vi.useFakeTimers({ toFake: ['Date'] })
})
afterEach(async () => {
  vi.useRealTimers()
  await setup.stop()
})

function createUser(): ProviderUser {
  const sub = randomUUID()
  return { sub, claims: { email: `${sub}@example.com`, email_verified: true } }
}

const letPass = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1000)

/** GET /users/me: 404 says that the token is good, and nobody has an account. */
const call = (token: string) =>
  fetch(`${service.baseUrl}/api/v1/users/me`, { headers: { authorization: `Bearer ${token}` } })
const statusOf = async (token: string) => (await call(token)).status

const keyReads = () => idp.requests.filter((path) => path === '/jwks').length

describe('the keys of a provider', () => {
  it('are taken over when the provider rotates them, without a restart, and the old ones end', async () => {
    const old = await idp.issueIdToken(createUser())
    expect(await statusOf(old)).toBe(404)
    await idp.rotateKeys({ keepOld: true })
    const fresh = await idp.issueIdToken(createUser())
    letPass(31)
    expect(await statusOf(fresh)).toBe(404)
    expect(await statusOf(old)).toBe(404)
    await idp.rotateKeys({ keepOld: false })
    letPass(601)
    expect(await statusOf(await idp.issueIdToken(createUser()))).toBe(404)
    expect(await statusOf(old)).toBe(401)
    expect(await statusOf(fresh)).toBe(401)
  })

  it('are read at most once in 30 seconds for tokens whose keys nobody knows', async () => {
    const forge = () => idp.sign({ iss: idp.issuer, aud: idp.client.id }, { kid: randomUUID() })
    await statusOf(await idp.issueIdToken(createUser()))
    letPass(31)
    const before = keyReads()
    for (let index = 0; index < 5; index += 1) expect(await statusOf(await forge())).toBe(401)
    expect(keyReads()).toBe(before + 1)
  })

  it('are good for sign-in in the browser as soon as the provider has rotated them', async () => {
    const signIn = async () => {
      const browser = createCookieBrowser()
      idp.logIn(createUser())
      const isCallback = (url: URL) => url.pathname.endsWith('/callback')
      return (await browser.get(await browser.follow(`${service.baseUrl}/sign-in/with/oidc`, isCallback))).status
    }
    expect(await signIn()).toBe(303)
    letPass(31)
    await idp.rotateKeys({ keepOld: false })
    expect(await signIn()).toBe(303)
  })
})

describe('a provider that is down', () => {
  it('makes the API unavailable for its tokens, not wrong, until it is back', async () => {
    const token = await idp.issueIdToken(createUser())
    await idp.stop()
    const response = await call(token)
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toBe('5')
    expect(await response.json()).toMatchObject({ code: 'unavailable', details: 'Example SSO does not answer.' })
    await idp.start()
    letPass(6)
    expect(await statusOf(token)).toBe(404)
  })

  it('is asked once for many requests, and not again for five seconds', async () => {
    const token = await idp.issueIdToken(createUser())
    await idp.stop()
    setup.logged.length = 0
    const answers = await Promise.all([1, 2, 3, 4].map(() => statusOf(token)))
    expect(answers).toEqual([503, 503, 503, 503])
    expect(await statusOf(token)).toBe(503)
    expect(setup.logged).toHaveLength(1)
    expect(setup.logged[0]).toMatchObject({ provider: 'oidc', msg: 'an identity provider cannot be discovered' })
    await idp.start()
  })

  it('is not missed while its keys are known, and makes no token wrong when they are not', async () => {
    const token = await idp.issueIdToken(createUser())
    expect(await statusOf(token)).toBe(404)
    await idp.stop()
    letPass(300)
    expect(await statusOf(token)).toBe(404)
    letPass(600)
    expect(await statusOf(token)).toBe(503)
    await idp.start()
    expect(await statusOf(token)).toBe(404)
  })

  it('is a page that says so, before sign-in and after it', async () => {
    const browser = createCookieBrowser()
    await idp.stop()
    const before = await browser.get(`${service.baseUrl}/sign-in/with/oidc`)
    expect(before.status).toBe(503)
    expect(await before.text()).toContain('Example SSO does not answer.')
    await idp.start()
    letPass(6)
    idp.logIn(createUser())
    const callback = await browser.follow(`${service.baseUrl}/sign-in/with/oidc`, ({ pathname }) =>
      pathname.endsWith('/callback'),
    )
    await idp.stop()
    const after = await browser.get(callback)
    expect(after.status).toBe(503)
    expect(await after.text()).toContain('Example SSO does not answer.')
    await idp.start()
  })

  it('is discovered again after a day, while what is known goes on working', async () => {
    const discoveries = () => idp.requests.filter((path) => path.startsWith('/.well-known/')).length
    const begin = async () => (await fetch(`${service.baseUrl}/sign-in/with/oidc`, { redirect: 'manual' })).status
    expect(await begin()).toBe(303)
    expect(await begin()).toBe(303)
    expect(discoveries()).toBe(1)
    letPass(24 * 3600 + 1)
    expect(await begin()).toBe(303)
    await vi.waitFor(() => expect(discoveries()).toBe(2))
  })
})
