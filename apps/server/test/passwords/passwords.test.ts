import { parseOptions } from '@node-rs/argon2'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { setPassword } from '../../src/passwords/actions.ts'
import { hashPassword, verifyPassword } from '../../src/passwords/hash-password.ts'
import { checkNewPassword, preparePassword } from '../../src/passwords/rules.ts'
import { hashToken } from '../../src/random-tokens.ts'
import { startBrowserSession } from '../../src/sessions/actions.ts'
import { createMember, createSignedInMember, password, signIn } from '../sign-in/accounts.ts'
import { createBrowser } from '../support/browser.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

const account = { email: 'ada.lovelace@example.com' }

describe('a new password', () => {
  it.each([
    'twelve chars',
    'aaaaaaaaaaab',
    '804215973361',
    'password and more',
    'только строчные',
    'x'.repeat(128),
    '🦜'.repeat(128),
    'ünïcödé wörds',
  ])('may be %j: there are no rules about kinds of characters', (candidate) => {
    expect(() => checkNewPassword(candidate, account)).not.toThrow()
  })

  it.each([
    ['', 'at least 12'],
    ['eleven char', 'at least 12'],
    ['🦜'.repeat(11), 'at least 12'],
    // Twelve code points as they are typed, ten as they are stored.
    ['u\u0308o\u030812345678', 'at least 12'],
    ['x'.repeat(129), 'at most 128'],
    ['with a\nline break', 'control characters'],
    ['with a\0nul byte', 'control characters'],
    ['Ada.Lovelace@example.com', 'your e-mail'],
    ['ada.LOVELACE', 'your e-mail'],
    ['unbelievable', 'most common'],
    ['UnBelievable', 'most common'],
    ['password123456', 'most common'],
    ['qwertyqwerty', 'most common'],
    ['111111111111', 'most common'],
  ])('%j is refused: %s', (candidate, reason) => {
    expect(() => checkNewPassword(candidate, account)).toThrowError(
      expect.objectContaining({ code: 'invalid_request', details: expect.stringMatching(`^password: .*${reason}`) }),
    )
  })
})

describe('a password hash', () => {
  it('is Argon2id with what OWASP asks at least, salted', async () => {
    const [first, second] = await Promise.all([hashPassword(password), hashPassword(password)])
    expect(first).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    expect(parseOptions(first)).toMatchObject({ memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 })
    expect(first).not.toBe(second)
  })

  it('is found again with the password as another system sends it (RFC 8265)', async () => {
    const hash = await hashPassword('wörds with\u00a0spaces')
    expect(await verifyPassword(hash, 'wo\u0308rds with spaces')).toBe(true)
    expect(await verifyPassword(hash, 'words with spaces')).toBe(false)
    expect(preparePassword('ＡＢ')).toBe('ＡＢ')
  })

  it('that does not exist fits no password, and takes as long', async () => {
    const hash = await hashPassword(password)
    const measure = async (stored: string | null) => {
      const startedAt = performance.now()
      expect(await verifyPassword(stored, 'not the password')).toBe(false)
      return performance.now() - startedAt
    }
    const known: number[] = []
    const unknown: number[] = []
    for (let run = 0; run < 15; run += 1) {
      known.push(await measure(hash))
      unknown.push(await measure(null))
    }
    const ratio = median(known) / median(unknown)
    expect(ratio).toBeGreaterThan(0.5)
    expect(ratio).toBeLessThan(2)
  })
})

function median(values: number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

let service: TestService

beforeAll(async () => {
  service = await createTestService()
})
afterAll(() => service.stop())

describe('changing the password', () => {
  const change = { current_password: password, new_password: 'another good password' }

  it('takes the current one, ends every other session, links and codes, and keeps this one', async () => {
    const member = await createSignedInMember(service)
    const elsewhere = createBrowser(service.baseUrl)
    await signIn(member, elsewhere)
    const { db } = service.deps
    const later = new Date(Date.now() + 60_000)
    await db
      .insertInto('password_resets')
      .values({ hash: hashToken('reset'), user_id: member.userId, expires_at: later })
      .execute()
    await db
      .insertInto('command_line_codes')
      .values({ hash: hashToken('code'), user_id: member.userId, target: 'x', issuer: 'x', expires_at: later })
      .execute()
    const answer = await member.browser.submit('/account', '/account/password', change)
    expect(answer).toMatchObject({ status: 303, location: '/account?notice=password-changed' })
    expect((await member.browser.get('/account')).status).toBe(200)
    expect((await elsewhere.get('/account')).status).toBe(303)
    expect(await db.selectFrom('password_resets').selectAll().execute()).toEqual([])
    expect(await db.selectFrom('command_line_codes').selectAll().execute()).toEqual([])
    expect((await signIn(member, elsewhere)).status).toBe(400)
    const fields = { email: member.email, password: change.new_password }
    expect((await elsewhere.submit('/sign-in', '/sign-in', fields)).status).toBe(303)
  })

  it('is refused with a wrong current one, and says which field it is', async () => {
    const member = await createSignedInMember(service)
    const answer = await member.browser.submit('/account', '/account/password', {
      ...change,
      current_password: 'not the password',
    })
    expect(answer).toMatchObject({ status: 400, error: 'The current password is wrong.' })
    expect(answer.html).toMatch(/id="error" role="alert"/)
    expect(answer.html).toMatch(/<input id="current_password"[^>]* aria-invalid="true" aria-describedby="error"/)
    expect((await signIn(member, createBrowser(service.baseUrl))).status).toBe(303)
  })

  it('is refused to a bad new one', async () => {
    const member = await createSignedInMember(service)
    const answer = await member.browser.submit('/account', '/account/password', { ...change, new_password: 'short' })
    expect(answer).toMatchObject({ status: 400, error: 'The password must have at least 12 characters.' })
    expect(answer.html).toMatch(
      /<input id="new_password"[^>]* aria-invalid="true" aria-describedby="new_password-hint error"/,
    )
  })

  it('cannot be used to guess the current one', async () => {
    const member = await createSignedInMember(service)
    const statuses: number[] = []
    for (let attempt = 0; attempt < 11; attempt += 1) {
      const fields = { ...change, current_password: `guess number ${attempt}` }
      statuses.push((await member.browser.submit('/account', '/account/password', fields)).status)
    }
    expect(statuses).toEqual([...Array(10).fill(400), 429])
  })
})

describe('an account without a password', () => {
  async function signInWithoutPassword(createdAt: Date) {
    const { userId } = await service.createAccount()
    const browser = createBrowser(service.baseUrl)
    const { cookie } = await startBrowserSession(service.deps.db, {
      userId,
      issuer: 'https://accounts.example',
      isMfa: null,
      userAgent: null,
      address: null,
      now: createdAt,
    })
    browser.cookies.set('godwit_session', cookie)
    return browser
  }

  it('gets one from a session that has just begun', async () => {
    const browser = await signInWithoutPassword(new Date())
    const answer = await browser.submit('/account', '/account/password', { new_password: 'my very first one' })
    expect(answer).toMatchObject({ status: 303, location: '/account?notice=password-changed' })
  })

  it('gets none from an older session, which may have been stolen', async () => {
    const browser = await signInWithoutPassword(new Date(Date.now() - 11 * 60_000))
    const { html } = await browser.get('/account')
    expect(html).not.toContain('action="/account/password"')
    const token = /name="form_token" value="([^"]*)"/.exec(html)?.[1] ?? ''
    const fields = { form_token: token, new_password: 'my very first one' }
    expect((await browser.post('/account/password', fields)).status).toBe(403)
  })

  it('cannot be signed in to with any password', async () => {
    const { email } = await service.createAccount()
    for (const candidate of ['', 'null', password]) {
      const browser = createBrowser(service.baseUrl)
      expect((await browser.submit('/sign-in', '/sign-in', { email, password: candidate })).status).toBe(400)
    }
  })
})

describe('setPassword', () => {
  it('ends every session when no session asks, as for the operator', async () => {
    const member = await createSignedInMember(service)
    await setPassword(service.deps, { userId: member.userId, password: 'set by the operator' })
    expect((await member.browser.get('/account')).status).toBe(303)
  })

  it('knows no account that does not exist', async () => {
    await expect(setPassword(service.deps, { userId: 999_999, password })).rejects.toMatchObject({ code: 'not_found' })
  })
})

describe('the sessions of an account', () => {
  it('are listed with what they come from, and end one by one', async () => {
    const member = await createSignedInMember(service)
    const elsewhere = createBrowser(service.baseUrl)
    await signIn(member, elsewhere)
    const { html } = await member.browser.get('/account')
    expect(html).toContain('Browser (this one)')
    expect(html).toContain('Test Browser')
    const action = /action="(\/account\/sessions\/[^"]+\/end)"/.exec(html)?.[1] ?? ''
    expect((await member.browser.submit('/account', action)).status).toBe(303)
    expect((await elsewhere.get('/account')).status).toBe(303)
    expect((await member.browser.get('/account')).status).toBe(200)
  })

  it('of somebody else cannot be ended', async () => {
    const member = await createSignedInMember(service)
    const other = await createMember(service)
    await signIn(other)
    const { id } = await service.deps.db
      .selectFrom('sessions')
      .select('id')
      .where('user_id', '=', other.userId)
      .executeTakeFirstOrThrow()
    const token = /name="form_token" value="([^"]*)"/.exec((await member.browser.get('/account')).html)?.[1] ?? ''
    await member.browser.post(`/account/sessions/${id}/end`, { form_token: token })
    expect((await other.browser.get('/account')).status).toBe(200)
  })
})
