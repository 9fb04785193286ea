import { TOTP } from 'otpauth'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { updateLastStep } from '../../src/second-factor/queries.ts'
import { describeSecret, findStep } from '../../src/second-factor/rules.ts'
import { createMember, createSignedInMember, password, signIn, turnOnSecondFactor } from '../sign-in/accounts.ts'
import { createBrowser, readHiddenFields } from '../support/browser.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

const stepMs = 30_000
const realTime = Math.floor(Date.now() / stepMs) * stepMs + 15_000
let now = realTime
let service: TestService

/** Every test has minutes of its own: no code of one is of a step that another has used. */
function passTime(ms: number): void {
  now += ms
}

beforeAll(async () => {
  service = await createTestService({ clock: () => new Date(now) })
})
afterAll(() => service.stop())

/** Somebody whose second factor is on, and a browser in which the password was just right. */
async function createMemberWithCode() {
  const member = await createSignedInMember(service)
  const showCode = await turnOnSecondFactor(member, () => new Date(now))
  passTime(stepMs * 2)
  const browser = createBrowser(service.baseUrl)
  expect(await signIn(member, browser)).toMatchObject({ status: 303, location: '/sign-in/code' })
  const enter = (code: string) => browser.submit('/sign-in/code', '/sign-in/code', { code })
  return { ...member, browser, enter, showCode: (offsetMs = 0) => showCode(new Date(now + offsetMs)) }
}

describe('a code', () => {
  // RFC 6238, appendix B, with the last six of its eight digits.
  const secret = Buffer.from('12345678901234567890')

  it.each([
    [59, '287082'],
    [1_111_111_109, '081804'],
    [1_234_567_890, '005924'],
    [20_000_000_000, '353130'],
  ])('at %i s is the one of RFC 6238', (seconds, code) => {
    const step = findStep(code, { secret, lastStep: null, now: new Date(seconds * 1000) })
    expect(step).toBe(Math.floor(seconds / 30))
  })

  it('is good one step before and after, and not further away', () => {
    const at = (steps: number) =>
      findStep('287082', { secret, lastStep: null, now: new Date((1 + steps) * stepMs + 1) })
    expect([-1, 0, 1, 2, 3].map(at)).toEqual([1, 1, 1, undefined, undefined])
  })

  it('of a step that was used, or an earlier one, is worth nothing', () => {
    const judge = (lastStep: number) => findStep('287082', { secret, lastStep, now: new Date(59_000) })
    expect([0, 1, 2].map(judge)).toEqual([1, undefined, undefined])
  })

  it.each(['', '28708', '2870822', 'abcdef', '２８７０８２', '-28708'])('%j is none', (code) => {
    expect(findStep(code, { secret, lastStep: null, now: new Date(59_000) })).toBeUndefined()
  })

  it('may be typed with a space', () => {
    expect(findStep(' 287 082 ', { secret, lastStep: null, now: new Date(59_000) })).toBe(1)
  })
})

describe('the secret', () => {
  it('is told to authenticator apps with the account and the server', () => {
    const secret = Buffer.from('12345678901234567890')
    const { uri, text } = describeSecret({ secret, email: 'ada@example.com', publicUrl: 'https://godwit.example:8443' })
    expect(text).toBe('GEZD GNBV GY3T QOJQ GEZD GNBV GY3T QOJQ')
    expect(decodeURIComponent(uri)).toMatch(/^otpauth:\/\/totp\/Godwit godwit\.example:ada@example\.com\?/)
    expect(uri).toContain('secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
  })
})

describe('turning the second factor on', () => {
  const page = '/account/second-factor'

  it('takes the password and a first code; before that it is off', async () => {
    const member = await createSignedInMember(service)
    expect((await member.browser.submit(page, `${page}/start`, { current_password: 'no' })).status).toBe(400)
    const { html } = await member.browser.submit(page, `${page}/start`, { current_password: password })
    expect(html).toContain('<svg')
    expect(html).toMatch(/autocomplete="one-time-code"/)
    const fields = { ...readHiddenFields(html, `${page}/confirm`), code: '000000' }
    const wrong = await member.browser.post(`${page}/confirm`, { ...fields, current_password: password })
    expect(wrong.error).toMatch(/The code is wrong/)
    expect(wrong.html).toContain('<svg')
    const elsewhere = createBrowser(service.baseUrl)
    expect((await signIn(member, elsewhere)).location).toBe('/account')
  })

  it('shows the secret to nobody who does not show the password, and takes no code from them', async () => {
    const member = await createSignedInMember(service)
    const { html } = await member.browser.submit(page, `${page}/start`, { current_password: password })
    const secret = /<code>([A-Z2-7 ]+)<\/code>/.exec(html)?.[1] ?? ''
    expect(secret).not.toBe('')
    const code = new TOTP({ secret: secret.replaceAll(' ', '') }).generate({ timestamp: now })
    const fields = { ...readHiddenFields(html, `${page}/confirm`), code }
    for (const answer of [
      await member.browser.get(page),
      await member.browser.post(`${page}/confirm`, fields),
      await member.browser.post(`${page}/confirm`, { ...fields, current_password: 'not the password' }),
    ]) {
      expect(answer.html).not.toContain(secret)
    }
    const elsewhere = createBrowser(service.baseUrl)
    expect((await signIn(member, elsewhere)).location).toBe('/account')
  })

  it('uses up the first code, and hides the secret from then on', async () => {
    const member = await createSignedInMember(service)
    const showCode = await turnOnSecondFactor(member, () => new Date(now))
    expect((await member.browser.get(page)).html).not.toMatch(/<svg|<code>/)
    const elsewhere = createBrowser(service.baseUrl)
    await signIn(member, elsewhere)
    const answer = await elsewhere.submit('/sign-in/code', '/sign-in/code', { code: showCode(new Date(now)) })
    expect(answer.status).toBe(400)
  })

  it('is not possible over one that is on', async () => {
    const { browser, enter, showCode, userId } = await createMemberWithCode()
    const code = showCode()
    expect((await enter(code)).status).toBe(303)
    const before = await findSecret(userId)
    const token = /name="form_token" value="([^"]*)"/.exec((await browser.get(page)).html)?.[1] ?? ''
    await browser.post(`${page}/start`, { form_token: token, current_password: password })
    expect(await findSecret(userId)).toEqual(before)
  })
})

async function findSecret(userId: number) {
  return await service.deps.db
    .selectFrom('users')
    .select(['totp_secret', 'totp_enabled_at'])
    .where('id', '=', userId)
    .executeTakeFirstOrThrow()
}

describe('signing in with a code', () => {
  it('opens a session that says so, and only then', async () => {
    const { browser, enter, showCode, userId } = await createMemberWithCode()
    expect(browser.cookies.has('godwit_session')).toBe(false)
    expect((await browser.get('/account')).status).toBe(303)
    expect(await enter(showCode())).toMatchObject({ status: 303, location: '/account' })
    expect(browser.cookies.has('godwit_pending')).toBe(false)
    const { is_mfa } = await service.deps.db
      .selectFrom('sessions')
      .select('is_mfa')
      .where('user_id', '=', userId)
      .orderBy('created_at', 'desc')
      .executeTakeFirstOrThrow()
    expect(is_mfa).toBe(true)
  })

  it('goes back to where one came from', async () => {
    const member = await createMemberWithCode()
    await member.browser.submit('/sign-in?return_to=%2Fdevice', '/sign-in', { email: member.email, password })
    expect((await member.enter(member.showCode())).location).toBe('/device')
  })

  it('takes a code once: who saw it typed cannot use it, not even at the same time', async () => {
    const member = await createMemberWithCode()
    const second = createBrowser(service.baseUrl)
    await signIn(member, second)
    const code = member.showCode()
    const answers = await Promise.all([member.enter(code), second.submit('/sign-in/code', '/sign-in/code', { code })])
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 400])
    const late = answers[0]?.status === 400 ? member.browser : second
    expect((await late.submit('/sign-in/code', '/sign-in/code', { code: member.showCode(-stepMs) })).status).toBe(400)
    expect((await late.submit('/sign-in/code', '/sign-in/code', { code: member.showCode(stepMs) })).status).toBe(303)
  })

  it('takes a step once, of two that have found the code good at the same time', async () => {
    const { userId, showCode } = await createMemberWithCode()
    const { totp_secret: secret } = await findSecret(userId)
    if (secret === null) throw new Error('the second factor is off')
    const step = findStep(showCode(), { secret, lastStep: null, now: new Date(now) }) ?? 0
    const isTaken = () => updateLastStep(service.deps.db, { userId, secret, step })
    expect((await Promise.all([isTaken(), isTaken()])).sort()).toEqual([false, true])
    expect(await updateLastStep(service.deps.db, { userId, secret, step: step - 1 })).toBe(false)
  })

  it('allows five tries, then the password is asked again', async () => {
    const { enter, showCode } = await createMemberWithCode()
    const wrong = String((Number(showCode()) + 1) % 1_000_000).padStart(6, '0')
    const statuses: number[] = []
    for (let attempt = 0; attempt < 6; attempt += 1) statuses.push((await enter(wrong)).status)
    expect(statuses).toEqual([400, 400, 400, 400, 400, 429])
    expect((await enter(showCode())).status).toBe(429)
  })

  it('allows ten tries at an account in 15 minutes, however often the password is given', async () => {
    const member = await createMemberWithCode()
    const statuses: number[] = []
    for (let attempt = 0; attempt < 12; attempt += 1) {
      const browser = createBrowser(service.baseUrl)
      await signIn(member, browser)
      statuses.push((await browser.submit('/sign-in/code', '/sign-in/code', { code: '00000' })).status)
    }
    expect(statuses).toEqual([...Array(10).fill(400), 429, 429])
  })

  it('ends five minutes after the password', async () => {
    const { browser, enter, showCode } = await createMemberWithCode()
    const form = await browser.get('/sign-in/code')
    expect(form.status).toBe(200)
    passTime(5 * 60_000)
    expect((await browser.get('/sign-in/code')).location).toBe('/sign-in')
    const token = /name="form_token" value="([^"]*)"/.exec(form.html)?.[1] ?? ''
    const answer = await browser.post('/sign-in/code', { form_token: token, code: showCode() })
    expect(answer.location).toBe('/sign-in')
    expect(browser.cookies.has('godwit_session')).toBe(false)
    await expect(enter(showCode())).rejects.toThrow('no form')
  })

  it('ends when the password is changed meanwhile', async () => {
    const { browser, userId } = await createMemberWithCode()
    await service.deps.db.updateTable('users').set({ password_hash: 'x' }).where('id', '=', userId).execute()
    expect((await browser.get('/sign-in/code')).location).toBe('/sign-in')
  })

  it.each([
    ['another account', (payload: Record<string, unknown>) => ({ ...payload, userId: 1 })],
    ['a later end', (payload: Record<string, unknown>) => ({ ...payload, expiresAt: now + 1e9 })],
    ['another place to go', (payload: Record<string, unknown>) => ({ ...payload, returnTo: 'https://evil.example' })],
  ])('refuses a cookie that was altered: %s', async (_name, alter) => {
    const { browser } = await createMemberWithCode()
    const [payload = '', signature = ''] = (browser.cookies.get('godwit_pending') ?? '').split('.')
    const altered = JSON.stringify(alter(JSON.parse(Buffer.from(payload, 'base64url').toString())))
    browser.cookies.set('godwit_pending', `${Buffer.from(altered).toString('base64url')}.${signature}`)
    expect((await browser.get('/sign-in/code')).location).toBe('/sign-in')
  })

  it('refuses a form token as its signature, and a cookie that is none', async () => {
    const browser = createBrowser(service.baseUrl)
    for (const value of ['', '.', 'e30.', `e30.${service.deps.pageSigner.sign('form', 'e30')}`]) {
      browser.cookies.set('godwit_pending', value)
      expect((await browser.get('/sign-in/code')).location).toBe('/sign-in')
    }
  })
})

describe('turning the second factor off', () => {
  it('takes the password', async () => {
    const { browser, enter, showCode, userId, email } = await createMemberWithCode()
    await enter(showCode())
    const page = '/account/second-factor'
    expect((await browser.submit(page, `${page}/off`, { current_password: 'no' })).status).toBe(400)
    expect((await findSecret(userId)).totp_enabled_at).not.toBeNull()
    expect((await browser.submit(page, `${page}/off`, { current_password: password })).status).toBe(303)
    expect(await findSecret(userId)).toEqual({ totp_secret: null, totp_enabled_at: null })
    const elsewhere = createBrowser(service.baseUrl)
    expect((await elsewhere.submit('/sign-in', '/sign-in', { email, password })).location).toBe('/account')
  })
})

describe('an account without second factor', () => {
  it('has no second step to skip to', async () => {
    const member = await createMember(service)
    expect((await member.browser.get('/sign-in/code')).location).toBe('/sign-in')
  })
})
