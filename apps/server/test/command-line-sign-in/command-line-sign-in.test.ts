import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startBrowserSession } from '../../src/sessions/actions.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

const target = 'http://localhost:53682/callback'
const minute = 60_000

let service: TestService
let account: TestAccount
let now: Date
const logged: Record<string, unknown>[] = []

beforeAll(async () => {
  now = new Date()
  service = await createTestService({ clock: () => now, log: createLog() })
  account = await service.createAccount()
})
afterAll(() => service.stop())
beforeEach(() => {
  now = new Date(Math.max(now.getTime(), Date.now()))
  logged.length = 0
})

function createLog() {
  return pino({ level: 'warn' }, { write: (line: string) => void logged.push(JSON.parse(line)) })
}

async function signInBrowser(holder: TestAccount = account, isMfa: boolean | null = null): Promise<string> {
  const { cookie } = await startBrowserSession(service.deps.db, {
    userId: holder.userId,
    issuer: 'https://idp.example',
    isMfa,
    userAgent: 'test',
    address: '127.0.0.1',
    now,
  })
  return `godwit_session=${cookie}`
}

const loginUrl = (asked = target) => `${service.baseUrl}/login?continue=${encodeURIComponent(asked)}`

async function get(url: string, cookie?: string): Promise<Response> {
  return await fetch(url, { redirect: 'manual', headers: cookie === undefined ? {} : { cookie } })
}

/** Presses a button of the consent page. */
async function decide(cookie: string, decision: 'allow' | 'deny', asked = target): Promise<Response> {
  const page = await (await get(loginUrl(asked), cookie)).text()
  const formToken = /name="form_token" value="([^"]+)"/.exec(page)?.[1] ?? ''
  return await post('/login', { form_token: formToken, continue: asked, decision }, { cookie })
}

async function post(path: string, form: Record<string, string>, headers: Record<string, string> = {}) {
  return await fetch(service.baseUrl + path, {
    method: 'POST',
    redirect: 'manual',
    headers,
    body: new URLSearchParams(form),
  })
}

async function obtainCode(cookie?: string): Promise<string> {
  const response = await decide(cookie ?? (await signInBrowser()), 'allow')
  expect(response.status).toBe(303)
  return new URL(response.headers.get('location') ?? '').searchParams.get('code') ?? ''
}

type Tokens = { access_token: string; refresh_token: string; token_type: string; expires_in: number }

async function exchange(code: string): Promise<Tokens> {
  const response = await post('/token', { grant_type: 'authorization_code', code })
  expect(response.status).toBe(200)
  return (await response.json()) as Tokens
}

const refresh = (refreshToken: string) => post('/token', { grant_type: 'refresh_token', refresh_token: refreshToken })

async function refreshOk(refreshToken: string): Promise<Tokens> {
  const response = await refresh(refreshToken)
  expect(response.status).toBe(200)
  return (await response.json()) as Tokens
}

const whoAmI = (token: string) => service.client(token).getCurrentUser()

describe('GET /login', () => {
  it('sends somebody who is not signed in to sign in first, and back', async () => {
    const response = await get(loginUrl())
    expect(response.status).toBe(303)
    const location = new URL(response.headers.get('location') ?? '', service.baseUrl)
    expect(location.pathname).toBe('/sign-in')
    expect(location.searchParams.get('return_to')).toBe(`/login?continue=${encodeURIComponent(target)}`)
  })

  it('asks whoever is signed in, and names who that is', async () => {
    const response = await get(loginUrl(), await signInBrowser())
    expect(response.status).toBe(200)
    expect(await response.text()).toContain(account.email)
    expect(response.headers.get('content-security-policy')).toContain("form-action 'self' http://localhost:53682;")
  })

  it.each(['https://evil.example/', 'http://evil.example:80/callback', 'http://localhost@evil.example/', '/account'])(
    'refuses to continue at %s',
    async (asked) => {
      const cookie = await signInBrowser()
      expect((await get(loginUrl(asked), cookie)).status).toBe(400)
      expect(logged.map(({ tried }) => tried)).toEqual(['a sign-in that continues on another host'])
      // Also when the page was another and the form was altered.
      const page = await (await get(loginUrl(), cookie)).text()
      const formToken = /name="form_token" value="([^"]+)"/.exec(page)?.[1] ?? ''
      const response = await post('/login', { form_token: formToken, continue: asked, decision: 'allow' }, { cookie })
      expect(response.status).toBe(400)
      expect(response.headers.get('location')).toBeNull()
    },
  )

  it('brings a refusal back to the client', async () => {
    const response = await decide(await signInBrowser(), 'deny')
    expect(response.headers.get('location')).toBe(`${target}?error=access_denied`)
  })

  it('takes no form that another site sent or that lacks the token of the session', async () => {
    const cookie = await signInBrowser()
    const form = { continue: target, decision: 'allow' }
    expect((await post('/login', form, { cookie })).status).toBe(403)
    const other = await (await get(loginUrl(), await signInBrowser())).text()
    const foreign = /name="form_token" value="([^"]+)"/.exec(other)?.[1] ?? ''
    expect((await post('/login', { ...form, form_token: foreign }, { cookie })).status).toBe(403)
    const page = await (await get(loginUrl(), cookie)).text()
    const own = /name="form_token" value="([^"]+)"/.exec(page)?.[1] ?? ''
    const crossSite = { cookie, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
    expect((await post('/login', { ...form, form_token: own }, crossSite)).status).toBe(403)
  })
})

describe('POST /token with a code', () => {
  it('answers what the client reads', async () => {
    const tokens = await exchange(await obtainCode(await signInBrowser(account, true)))
    expect(tokens).toMatchObject({ token_type: 'Bearer', expires_in: 900, refresh_token: expect.any(String) })
    const header = decodeProtectedHeader(tokens.access_token)
    expect(header).toEqual({ alg: 'RS256', typ: 'JWT', kid: expect.any(String) })
    const claims = decodeJwt(tokens.access_token)
    expect(claims).toMatchObject({
      iss: service.baseUrl,
      aud: service.baseUrl,
      sub: String(account.userId),
      email: account.email,
      idp: 'https://idp.example',
      is_mfa: true,
      sid: expect.any(String),
      jti: expect.any(String),
      auth_time: expect.any(Number),
    })
    expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(900)
    expect(await whoAmI(tokens.access_token)).toMatchObject({ id: account.userId })
  })

  it('is signed with a key that is published', async () => {
    const { access_token: token } = await exchange(await obtainCode())
    const response = await fetch(`${service.baseUrl}/.well-known/jwks.json`)
    expect(response.status).toBe(200)
    const keySet = createLocalJWKSet((await response.json()) as never)
    const { payload } = await jwtVerify(token, keySet, { algorithms: ['RS256'], currentDate: now })
    expect(payload.sub).toBe(String(account.userId))
  })

  it('says nothing of a second factor when the identity provider did not', async () => {
    expect(decodeJwt((await exchange(await obtainCode())).access_token)).not.toHaveProperty('is_mfa')
  })

  it('takes a code once; a second use ends what came of the first', async () => {
    const code = await obtainCode()
    const tokens = await exchange(code)
    const again = await post('/token', { grant_type: 'authorization_code', code })
    expect(again.status).toBe(400)
    expect(await again.json()).toMatchObject({ error: 'invalid_grant' })
    await expect(whoAmI(tokens.access_token)).rejects.toMatchObject({ status: 401 })
    expect((await refresh(tokens.refresh_token)).status).toBe(400)
    expect(logged).toContainEqual(expect.objectContaining({ reason: 'used' }))
    expect(JSON.stringify(logged)).not.toContain(code)
  })

  it('gives tokens to one of many that present a code at once, and then to none', async () => {
    const code = await obtainCode()
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => post('/token', { grant_type: 'authorization_code', code })),
    )
    const good = answers.filter(({ status }) => status === 200)
    expect(good).toHaveLength(1)
    const tokens: Tokens[] = await Promise.all(good.map(async (answer) => (await answer.json()) as Tokens))
    await expect(whoAmI(tokens[0]?.access_token ?? '')).rejects.toMatchObject({ status: 401 })
  })

  it('takes no code after 60 s, an invented one, or one meant for another target', async () => {
    const late = await obtainCode()
    now = new Date(now.getTime() + minute + 1)
    expect((await post('/token', { grant_type: 'authorization_code', code: late })).status).toBe(400)
    expect((await post('/token', { grant_type: 'authorization_code', code: 'x'.repeat(43) })).status).toBe(400)
    const code = await obtainCode()
    const elsewhere = { grant_type: 'authorization_code', code, redirect_uri: 'http://localhost:1/callback' }
    expect((await post('/token', elsewhere)).status).toBe(400)
    await exchange(code)
  })

  it.each([
    [{}, 'unsupported_grant_type'],
    [{ grant_type: 'password', username: 'a', password: 'b' }, 'unsupported_grant_type'],
    [{ grant_type: 'authorization_code' }, 'invalid_request'],
    [{ grant_type: 'refresh_token', refresh_token: '' }, 'invalid_request'],
  ])('refuses %j as %s', async (form, error) => {
    const response = await post('/token', form as Record<string, string>)
    expect(response.status).toBe(400)
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(await response.json()).toMatchObject({ error, error_description: expect.any(String) })
  })
})

describe('POST /token with a refresh token', () => {
  it('rotates: new tokens for the same session', async () => {
    const first = await exchange(await obtainCode())
    now = new Date(now.getTime() + 16 * minute)
    await expect(whoAmI(first.access_token)).rejects.toMatchObject({ status: 401 })
    const second = await refreshOk(first.refresh_token)
    expect(second.refresh_token).not.toBe(first.refresh_token)
    expect(decodeJwt(second.access_token).sid).toBe(decodeJwt(first.access_token).sid)
    expect(await whoAmI(second.access_token)).toMatchObject({ id: account.userId })
  })

  it('serves clients that run side by side with one token, also one that was busy for most of an hour', async () => {
    const first = await exchange(await obtainCode())
    const sideBySide = await Promise.all(Array.from({ length: 8 }, () => refreshOk(first.refresh_token)))
    now = new Date(now.getTime() + 59 * minute)
    const late = await refreshOk(first.refresh_token)
    for (const { refresh_token: token } of [...sideBySide, late]) await refreshOk(token)
  })

  it('takes a token that was exchanged long ago for stolen, and ends the session', async () => {
    const first = await exchange(await obtainCode())
    const second = await refreshOk(first.refresh_token)
    now = new Date(now.getTime() + 61 * minute)
    const third = await refreshOk(second.refresh_token)
    const stolen = await refresh(first.refresh_token)
    expect(stolen.status).toBe(400)
    expect(await stolen.json()).toMatchObject({ error: 'invalid_grant' })
    expect((await refresh(third.refresh_token)).status).toBe(400)
    await expect(whoAmI(third.access_token)).rejects.toMatchObject({ status: 401 })
    expect(logged.map(({ reason }) => reason)).toContain('used; its session has been ended')
    expect(JSON.stringify(logged)).not.toContain(first.refresh_token)
  })

  it('ends when it was not used for 90 days, and never before', async () => {
    let tokens = await exchange(await obtainCode())
    for (let i = 0; i < 3; i += 1) {
      now = new Date(now.getTime() + 89 * 24 * 60 * minute)
      tokens = await refreshOk(tokens.refresh_token)
    }
    now = new Date(now.getTime() + 91 * 24 * 60 * minute)
    expect((await refresh(tokens.refresh_token)).status).toBe(400)
  })

  it('ends with the account', async () => {
    const leaver = await service.createAccount()
    const tokens = await exchange(await obtainCode(await signInBrowser(leaver)))
    await service.deps.db.deleteFrom('users').where('id', '=', leaver.userId).execute()
    expect((await refresh(tokens.refresh_token)).status).toBe(400)
    await expect(whoAmI(tokens.access_token)).rejects.toMatchObject({ status: 401 })
  })
})

describe('POST /api/logout', () => {
  const logOut = (token?: string) =>
    fetch(`${service.baseUrl}/api/logout`, {
      method: 'POST',
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    })

  it('ends the session, with access token and refresh token', async () => {
    const tokens = await exchange(await obtainCode())
    expect((await logOut(tokens.refresh_token)).status).toBe(204)
    await expect(whoAmI(tokens.access_token)).rejects.toMatchObject({ status: 401 })
    expect((await refresh(tokens.refresh_token)).status).toBe(400)
  })

  it('may be repeated, and tells nothing of tokens that it does not know', async () => {
    const tokens = await exchange(await obtainCode())
    await logOut(tokens.refresh_token)
    expect((await logOut(tokens.refresh_token)).status).toBe(204)
    expect((await logOut('x'.repeat(43))).status).toBe(204)
    expect((await logOut()).status).toBe(401)
  })

  it('leaves other sessions alone', async () => {
    const [one, other] = [await exchange(await obtainCode()), await exchange(await obtainCode())]
    await logOut(one.refresh_token)
    expect(await whoAmI(other.access_token)).toMatchObject({ id: account.userId })
  })
})

describe('an access token', () => {
  it('cannot be used where a session or refresh token is asked for', async () => {
    const tokens = await exchange(await obtainCode())
    expect((await refresh(tokens.access_token)).status).toBe(400)
    expect((await get(loginUrl(), `godwit_session=${tokens.access_token}`)).status).toBe(303)
  })
})
