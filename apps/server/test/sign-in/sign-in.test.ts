import { Writable } from 'node:stream'
import Fastify from 'fastify'
import { sql } from 'kysely'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { allowFormTarget, preparePages, sendPage } from '../../src/sign-in/scope.ts'
import { createBrowser } from '../support/browser.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { createMember, createSignedInMember, password, signIn } from './accounts.ts'

let service: TestService
let lines: string[] = []

beforeAll(async () => {
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  service = await createTestService({
    log: pino({ level: 'trace' }, sink),
    config: {
      identityProviders: [
        { id: 'google', name: 'Google', issuer: 'https://accounts.google.com', clientId: 'id', clientSecret: 'secret' },
      ],
    },
  })
})
afterAll(() => service.stop())

const sessionCookie = 'godwit_session'

describe('the sign-in page', () => {
  it('lets a browser do nothing but send forms here', async () => {
    const { status, headers } = await createBrowser(service.baseUrl).get('/sign-in')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
    const policy = headers.get('content-security-policy')?.split(/;\s*/).sort()
    expect(policy).toEqual([
      "base-uri 'none'",
      "default-src 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
      "img-src 'self' data:",
      "style-src 'self'",
    ])
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('referrer-policy')).toBe('same-origin')
  })

  it('says to password managers which field is which, has a label for each, and no script', async () => {
    const { html } = await createBrowser(service.baseUrl).get('/sign-in')
    expect(html).toMatch(/<html lang="en">/)
    expect(html).toMatch(/<label for="email">E-mail<\/label>\s*<input id="email" [^>]*autocomplete="username"/)
    expect(html).toMatch(
      /<label for="password">Password<\/label>\s*<input id="password" [^>]*autocomplete="current-password"/,
    )
    expect(html).not.toMatch(/<script|<style| style=| on\w+=/)
  })

  it('has its style in a file that is kept for a while', async () => {
    const { headers, html } = await createBrowser(service.baseUrl).get('/sign-in/style.css')
    expect(headers.get('content-type')).toBe('text/css; charset=utf-8')
    expect(headers.get('cache-control')).toBe('public, max-age=3600')
    expect(html).toContain('prefers-color-scheme: dark')
  })

  it('offers the identity providers, which bring back to the same place', async () => {
    const { html } = await createBrowser(service.baseUrl).get('/sign-in?return_to=%2Fdevice')
    expect(html).toContain('href="/sign-in/with/google?return_to&#61;%2Fdevice">Sign in with Google</a>')
  })

  it('does not offer to mail a link where no mail is sent', async () => {
    const { html } = await createBrowser(service.baseUrl).get('/sign-in')
    expect(html).not.toContain('/reset-password')
    const { status, html: page } = await createBrowser(service.baseUrl).get('/reset-password')
    expect(status).toBe(404)
    expect(page).toContain('This server sends no mail.')
  })

  it('shows what was typed as text, never as markup', async () => {
    const email = '"><script>alert(1)</script>@example.com'
    const answer = await createBrowser(service.baseUrl).submit('/sign-in', '/sign-in', { email, password: 'x' })
    expect(answer.status).toBe(400)
    expect(answer.html).not.toContain('<script>')
  })
})

describe('signing in', () => {
  it('starts a session in a cookie that scripts and other sites do not get', async () => {
    const member = await createMember(service)
    const answer = await signIn(member)
    expect(answer).toMatchObject({ status: 303, location: '/account' })
    const cookie = answer.headers.getSetCookie().find((line) => line.startsWith(sessionCookie))
    expect(cookie).toMatch(/; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/)
    const account = await member.browser.get('/account')
    expect(account.status).toBe(200)
    expect(account.html).toContain(`Signed in as <strong>${member.email}</strong>`)
  })

  it('takes the e-mail whatever its case, and goes back to where one came from', async () => {
    const member = await createMember(service)
    const answer = await member.browser.submit('/sign-in?return_to=%2Fdevice%3Fa%3Db', '/sign-in', {
      email: ` ${member.email.toUpperCase()} `,
      password,
    })
    expect(answer).toMatchObject({ status: 303, location: '/device?a=b' })
    expect(await member.browser.get('/sign-in?return_to=%2Fdevice')).toMatchObject({ status: 303, location: '/device' })
  })

  it('marks the session as one without second factor, by this service', async () => {
    const member = await createSignedInMember(service)
    const session = await service.deps.db
      .selectFrom('sessions')
      .selectAll()
      .where('user_id', '=', member.userId)
      .executeTakeFirstOrThrow()
    expect(session).toMatchObject({
      client: 'browser',
      issuer: service.baseUrl,
      is_mfa: false,
      user_agent: 'Test Browser',
    })
    expect(session.cookie_hash?.toString()).not.toContain(member.browser.cookies.get(sessionCookie))
  })

  it('never takes over a cookie that the browser came with', async () => {
    const member = await createMember(service)
    const planted = 'A'.repeat(43)
    member.browser.cookies.set(sessionCookie, planted)
    await signIn(member)
    expect(member.browser.cookies.get(sessionCookie)).not.toBe(planted)
    const attacker = createBrowser(service.baseUrl)
    attacker.cookies.set(sessionCookie, planted)
    expect((await attacker.get('/account')).status).toBe(303)
  })

  it('ends the session that the browser came with: who planted its cookie is out', async () => {
    const attacker = await createSignedInMember(service)
    const planted = attacker.browser.cookies.get(sessionCookie) ?? ''
    const member = await createMember(service)
    member.browser.cookies.set(sessionCookie, planted)
    const token = /name="form_token" value="([^"]*)"/.exec((await member.browser.get('/account')).html)?.[1] ?? ''
    const answer = await member.browser.post('/sign-in', { form_token: token, email: member.email, password })
    expect(answer.status).toBe(303)
    expect(member.browser.cookies.get(sessionCookie)).not.toBe(planted)
    expect((await member.browser.get('/account')).html).toContain(member.email)
    expect((await attacker.browser.get('/account')).status).toBe(303)
  })

  it('does not happen when the password was replaced in the same moment', async () => {
    const member = await createMember(service)
    const trx = await service.deps.db.startTransaction().execute()
    await trx.updateTable('users').set({ password_hash: 'another' }).where('id', '=', member.userId).execute()
    const answer = signIn(member)
    await expect
      .poll(async () => {
        const waiting = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`.execute(service.deps.db)
        return waiting.rows[0]?.n
      })
      .toBe(1)
    await trx.commit().execute()
    expect((await answer).status).toBe(401)
    expect(member.browser.cookies.has(sessionCookie)).toBe(false)
  })

  it('signs out: the session ends at once, and the cookie is removed', async () => {
    const member = await createSignedInMember(service)
    const cookie = member.browser.cookies.get(sessionCookie) ?? ''
    const answer = await member.browser.submit('/account', '/sign-out')
    expect(answer).toMatchObject({ status: 303, location: '/sign-in?notice=signed-out' })
    expect(member.browser.cookies.has(sessionCookie)).toBe(false)
    const thief = createBrowser(service.baseUrl)
    thief.cookies.set(sessionCookie, cookie)
    expect(await thief.get('/account')).toMatchObject({ status: 303, location: '/sign-in?return_to=%2Faccount' })
    expect((await member.browser.get('/sign-in?notice=signed-out')).html).toContain('You are signed out.')
  })

  it('puts neither password nor cookie nor form token into the log', async () => {
    lines = []
    const member = await createMember(service)
    await member.browser.submit('/sign-in', '/sign-in', { email: member.email, password: 'a wrong secret here' })
    await signIn(member)
    await expect.poll(() => lines.join('')).toContain('refused a sign-in')
    const log = lines.join('')
    expect(log).toContain('a wrong e-mail or password')
    for (const secret of [password, 'a wrong secret here', ...member.browser.cookies.values()]) {
      expect(log).not.toContain(secret)
    }
  })
})

describe('return_to', () => {
  it.each([
    'https://evil.example/',
    '//evil.example/',
    '///evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '/.//evil.example',
    '/x/..//evil.example',
    'javascript:alert(1)',
    'http:evil.example',
    'evil.example',
    '/%0d%0aset-cookie:x=y\r\nx: y',
    '',
    `/${'x'.repeat(3000)}`,
  ])('%j does not lead away from here', async (target) => {
    const member = await createMember(service)
    const query = new URLSearchParams({ return_to: target })
    expect(
      await member.browser.submit(`/sign-in?${query}`, '/sign-in', { email: member.email, password }),
    ).toMatchObject({
      status: 303,
      location: '/account',
    })
    expect((await member.browser.get(`/sign-in?${query}`)).location).toBe('/account')
  })

  it('is judged again when the form is sent', async () => {
    const member = await createMember(service)
    const fields = { email: member.email, password, return_to: 'https://evil.example/' }
    expect((await member.browser.submit('/sign-in', '/sign-in', fields)).location).toBe('/account')
  })
})

describe('forms of other sites', () => {
  it.each([
    ['another origin', { origin: 'https://evil.example' }],
    ['a sandboxed frame', { origin: 'null' }],
    ['another site, as the browser says', { 'sec-fetch-site': 'cross-site' }],
    ['another host of the same site', { 'sec-fetch-site': 'same-site' }],
  ])('are refused: %s', async (_name, headers) => {
    lines = []
    const member = await createMember(service)
    const answer = await member.browser.submit('/sign-in', '/sign-in', { email: member.email, password }, headers)
    expect(answer.status).toBe(403)
    expect(answer.headers.get('content-type')).toContain('text/html')
    expect(member.browser.cookies.has(sessionCookie)).toBe(false)
    await expect.poll(() => lines.join('')).toContain('a form from another site')
  })

  it('are refused without the token, with an invented one, and with one of another browser', async () => {
    lines = []
    const member = await createMember(service)
    const stranger = createBrowser(service.baseUrl)
    const foreign = /name="form_token" value="([^"]*)"/.exec((await stranger.get('/sign-in')).html)?.[1] ?? ''
    await member.browser.get('/sign-in')
    const fields = { email: member.email, password }
    expect((await member.browser.post('/sign-in', fields)).status).toBe(403)
    expect((await member.browser.post('/sign-in', { ...fields, form_token: 'A'.repeat(43) })).status).toBe(403)
    expect((await member.browser.post('/sign-in', { ...fields, form_token: foreign })).status).toBe(403)
    await expect.poll(() => lines.join('')).toContain('a form without its token')
    expect(lines.join('')).toContain('a form with the token of another session')
  })

  it.each(['/account/password', '/account/second-factor/start', '/account/second-factor/off', '/sign-out'])(
    'to %s are refused although the cookie comes along',
    async (action) => {
      const member = await createSignedInMember(service)
      const fields = { current_password: password, new_password: 'another good password' }
      expect((await member.browser.post(action, fields)).status).toBe(403)
      expect((await member.browser.get('/account')).status).toBe(200)
    },
  )

  it('a token made before sign-in is worth nothing after it', async () => {
    const member = await createMember(service)
    const before = /name="form_token" value="([^"]*)"/.exec((await member.browser.get('/sign-in')).html)?.[1] ?? ''
    await signIn(member)
    expect((await member.browser.post('/sign-out', { form_token: before })).status).toBe(403)
  })

  it('other kinds of bodies are not read at all', async () => {
    const member = await createMember(service)
    await member.browser.get('/sign-in')
    const cookie = [...member.browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x']) {
      const response = await fetch(`${service.baseUrl}/sign-in`, {
        method: 'POST',
        headers: { 'content-type': type, cookie },
        body: JSON.stringify({ email: member.email, password }),
      })
      expect(response.status).toBe(400)
    }
  })

  it('too large a form is refused before it is read', async () => {
    const browser = createBrowser(service.baseUrl)
    const answer = await browser.submit('/sign-in', '/sign-in', {
      email: 'a@example.com',
      password: 'x'.repeat(70_000),
    })
    expect(answer.status).toBe(413)
  })
})

describe('a page that leads to another origin', () => {
  it('may end its forms there, and nowhere else', async () => {
    const app = Fastify()
    await preparePages(app, service.deps)
    app.get('/leads-away', async (_request, reply) => {
      allowFormTarget(reply, 'http://localhost:4321/callback')
      return sendPage(reply, { title: 'Go on', body: '' })
    })
    const { headers } = await app.inject('/leads-away')
    expect(headers['content-security-policy']).toContain("form-action 'self' http://localhost:4321;")
    await app.close()
  })
})

describe('a notice in the address', () => {
  it.each(['constructor', '__proto__', '<b>x</b>'])('is shown only when it is one of ours, not %s', async (notice) => {
    const { html } = await createBrowser(service.baseUrl).get(`/sign-in?notice=${encodeURIComponent(notice)}`)
    expect(html).not.toContain('class="notice"')
  })
})

describe('on https', () => {
  it('cookies have the __Host- prefix and Secure', async () => {
    const secure = await createTestService({ config: { publicUrl: 'https://godwit.example' } })
    try {
      const member = await createMember(secure)
      const answer = await member.browser.submit(
        '/sign-in',
        '/sign-in',
        { email: member.email, password },
        { origin: 'https://godwit.example' },
      )
      expect(answer.status).toBe(303)
      const cookie = answer.headers.getSetCookie().find((line) => line.includes('session'))
      expect(cookie).toMatch(
        /^__Host-godwit_session=[\w-]{43}; Path=\/; Expires=[^;]+; HttpOnly; Secure; SameSite=Lax$/,
      )
    } finally {
      await secure.stop()
    }
  })
})

describe('a fault behind a page', () => {
  it('is a page that tells nothing but the request id', async () => {
    const browser = createBrowser(service.baseUrl)
    await service.deps.db.schema.alterTable('sessions').renameTo('sessions_away').execute()
    browser.cookies.set(sessionCookie, 'A'.repeat(43))
    const answer = await browser.get('/account')
    await service.deps.db.schema.alterTable('sessions_away').renameTo('sessions').execute()
    expect(answer.status).toBe(500)
    expect(answer.headers.get('content-type')).toContain('text/html')
    expect(answer.error).toBe(`request id ${answer.headers.get('x-request-id')}`)
    expect(answer.html).not.toContain('relation')
  })
})
