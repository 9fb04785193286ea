import { Writable } from 'node:stream'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { upsertInvitation } from '../../src/invitations/queries.ts'
import { insertMember, insertOrganization } from '../../src/organizations/queries.ts'
import { generateToken } from '../../src/random-tokens.ts'
import { createBrowser } from '../support/browser.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { createMember, createSignedInMember, password, signIn } from './accounts.ts'

let service: TestService
let owner: TestAccount
let organizationId = 0
const lines: string[] = []

beforeAll(async () => {
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  service = await createTestService({ log: pino({ level: 'trace' }, sink) })
  owner = await service.createAccount({ email: 'owner@example.com' })
  const organization = await insertOrganization(service.deps.db, { name: 'Birds <b>', organizationType: 'team' })
  organizationId = organization.id
  await insertMember(service.deps.db, { organizationId, userId: owner.userId, role: 'owner' })
})
afterAll(() => service.stop())

async function invite(email: string, options: { isMailed?: boolean; expiresAt?: Date } = {}) {
  const token = generateToken()
  await upsertInvitation(service.deps.db, {
    organizationId,
    appId: null,
    email,
    role: 'developer',
    token,
    isMailed: options.isMailed ?? true,
    invitedByUserId: owner.userId,
    createdAt: new Date(),
    expiresAt: options.expiresAt ?? new Date(Date.now() + 60_000),
  })
  return `/invitations/${token}`
}

async function findRole(email: string) {
  const row = await service.deps.db
    .selectFrom('organization_members')
    .innerJoin('users', 'users.id', 'user_id')
    .select(['role', 'email_verified_at', 'display_name'])
    .where('organization_id', '=', organizationId)
    .where('email', '=', email)
    .executeTakeFirst()
  return row && { role: row.role, isVerified: row.email_verified_at !== null, name: row.display_name }
}

const join = { display_name: 'Ada', new_password: 'a password of my own' }

describe('the page of an invitation', () => {
  it('says who invites to what, as text', async () => {
    const { status, html } = await createBrowser(service.baseUrl).get(await invite('reader@example.com'))
    expect(status).toBe(200)
    expect(html).toContain('owner@example.com invites you to the organization Birds &#60;b&#62;.')
    expect(html).toContain('<dd>Developer</dd>')
    expect(html).toContain('<dd>reader@example.com</dd>')
  })

  it('is a 404 for a link that is unknown, too old or answered, and never shows in the log', async () => {
    const old = await invite('late@example.com', { expiresAt: new Date(Date.now() - 1) })
    for (const path of [`/invitations/${generateToken()}`, old]) {
      expect(await createBrowser(service.baseUrl).get(path)).toMatchObject({
        status: 404,
        error: 'This invitation was answered, withdrawn, or is too old.',
      })
      await expect.poll(() => lines.join('')).toContain('/invitations/…')
      expect(lines.join('')).not.toContain(path.split('/').at(-1))
    }
  })
})

describe('somebody with an account', () => {
  it('signs in, comes back and accepts', async () => {
    const member = await createMember(service)
    const path = await invite(member.email.toUpperCase())
    const { html } = await member.browser.get(path)
    expect(html).not.toContain('new-password')
    expect(html).toContain(`href="/sign-in?return_to&#61;${encodeURIComponent(path)}"`)
    const query = new URLSearchParams({ return_to: path })
    const signedIn = await member.browser.submit(`/sign-in?${query}`, '/sign-in', { email: member.email, password })
    expect(signedIn.location).toBe(path)
    const answer = await member.browser.submit(path, `${path}/accept`)
    expect(answer.status).toBe(200)
    expect(answer.html).toContain('You are now a member of Birds &#60;b&#62;.')
    expect(await findRole(member.email)).toMatchObject({ role: 'developer' })
    expect((await member.browser.get(path)).status).toBe(404)
  })

  it('declines, and is no member', async () => {
    const member = await createSignedInMember(service)
    const path = await invite(member.email)
    expect((await member.browser.submit(path, `${path}/decline`)).html).toContain('You declined the invitation.')
    expect(await findRole(member.email)).toBeUndefined()
    expect((await member.browser.get(path)).status).toBe(404)
  })

  it('cannot accept what is for somebody else, and is offered to sign out', async () => {
    const member = await createSignedInMember(service)
    const path = await invite('somebody-else@example.com')
    const { html } = await member.browser.get(path)
    expect(html).toContain(`You are signed in as <strong>${member.email}</strong>`)
    expect(html).not.toContain('/accept')
    const token = /name="form_token" value="([^"]*)"/.exec(html)?.[1] ?? ''
    expect((await member.browser.post(`${path}/accept`, { form_token: token })).status).toBe(403)
    expect(await findRole(member.email)).toBeUndefined()
    expect((await member.browser.submit(path, '/sign-out')).status).toBe(303)
  })

  it('does not accept by a form of another site', async () => {
    const member = await createSignedInMember(service)
    const path = await invite(member.email)
    expect((await member.browser.post(`${path}/accept`, {})).status).toBe(403)
    expect(await findRole(member.email)).toBeUndefined()
  })
})

describe('somebody without an account', () => {
  it('creates one with the invited e-mail, is in, and signed in', async () => {
    const email = 'newcomer@example.com'
    const path = await invite(email)
    const browser = createBrowser(service.baseUrl)
    const answer = await browser.submit(path, `${path}/join`, { ...join, email: 'attacker@example.com' })
    expect(answer.html).toContain('You are now a member')
    expect(await findRole(email)).toEqual({ role: 'developer', isVerified: true, name: 'Ada' })
    expect((await browser.get('/account')).html).toContain(`Signed in as <strong>${email}</strong>`)
    const elsewhere = createBrowser(service.baseUrl)
    const fields = { email, password: join.new_password }
    expect((await elsewhere.submit('/sign-in', '/sign-in', fields)).status).toBe(303)
  })

  it('has shown the e-mail only when the link was mailed', async () => {
    const email = 'by-hand@example.com'
    const path = await invite(email, { isMailed: false })
    await createBrowser(service.baseUrl).submit(path, `${path}/join`, { ...join, display_name: '' })
    expect(await findRole(email)).toEqual({ role: 'developer', isVerified: false, name: null })
  })

  it('needs a good password; the link and the name stay', async () => {
    const path = await invite('weak@example.com')
    const answer = await createBrowser(service.baseUrl).submit(path, `${path}/join`, { ...join, new_password: 'weak' })
    expect(answer).toMatchObject({ status: 400, error: 'The password must have at least 12 characters.' })
    expect(answer.html).toMatch(/name="display_name"[^>]* value="Ada"/)
    expect(await findRole('weak@example.com')).toBeUndefined()
  })

  it('makes one account when the form is sent twice at once', async () => {
    const email = 'twice@example.com'
    const path = await invite(email)
    const browsers = [createBrowser(service.baseUrl), createBrowser(service.baseUrl)]
    const answers = await Promise.all(browsers.map((browser) => browser.submit(path, `${path}/join`, join)))
    expect(answers.map(({ status }) => status).sort()[0]).toBe(200)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(await findRole(email)).toMatchObject({ role: 'developer' })
  })

  it('cannot take over an account that exists by creating it again', async () => {
    const member = await createMember(service)
    const path = await invite(member.email)
    const browser = createBrowser(service.baseUrl)
    const token = /name="form_token" value="([^"]*)"/.exec((await browser.get('/sign-in')).html)?.[1] ?? ''
    const answer = await browser.post(`${path}/join`, { ...join, form_token: token })
    expect(answer.status).toBe(400)
    expect(browser.cookies.has('godwit_session')).toBe(false)
    expect((await signIn(member)).status).toBe(303)
  })
})
