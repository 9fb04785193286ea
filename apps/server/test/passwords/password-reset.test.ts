import { Writable } from 'node:stream'
import { sql } from 'kysely'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiKey } from '../../src/api-keys/actions.ts'
import { sendMail } from '../../src/mail/send-mail.ts'
import { hashPassword } from '../../src/passwords/hash-password.ts'
import { deleteCredentialsUnderway, updatePasswordHash } from '../../src/passwords/queries.ts'
import { createAccount } from '../../src/users/actions.ts'
import { createMember, createSignedInMember, password, signIn } from '../sign-in/accounts.ts'
import { createBrowser, readHiddenFields } from '../support/browser.ts'
import { type MailServer, readText, startMailServer } from '../support/mail-server.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

let mailServer: MailServer
let service: TestService
let now = Date.now()
const lines: string[] = []

beforeAll(async () => {
  mailServer = await startMailServer()
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  service = await createTestService({
    clock: () => new Date(now),
    log: pino({ level: 'trace' }, sink),
    config: { mail: { smtpUrl: mailServer.smtpUrl, from: 'godwit@example.com' } },
  })
})
afterAll(async () => {
  await service.stop()
  await mailServer.stop()
})

const newPasswords = { new_password: 'a password from a link', repeated_password: 'a password from a link' }

async function ask(email: string) {
  return await createBrowser(service.baseUrl).submit('/reset-password', '/reset-password', { email })
}

/** The path of the link in a mail that waits to be sent to somebody. */
async function findLink(email: string): Promise<string> {
  const { rows } = await sql<{ text: string }>`
    select data->>'text' as text from pgboss.job where name = 'send-mail' and data->>'to' = ${email}
    order by created_on desc limit 1`.execute(service.deps.db)
  return readLink(rows[0]?.text ?? '')
}

function readLink(text: string): string {
  const path = new RegExp(`${service.baseUrl}(/reset-password/[\\w-]{43})`).exec(text)?.[1]
  if (path === undefined) throw new Error(`no link in ${text}`)
  return path
}

describe('a forgotten password', () => {
  it('is replaced with a mailed link, which signs everybody out', async () => {
    const member = await createSignedInMember(service)
    expect((await member.browser.get('/sign-in')).status).toBe(303)
    expect((await createBrowser(service.baseUrl).get('/sign-in')).html).toContain('href="/reset-password"')
    expect((await ask(member.email.toUpperCase())).status).toBe(200)
    const link = await findLink(member.email)
    const browser = createBrowser(service.baseUrl)
    expect((await browser.get(link)).html).toContain(`For <strong>${member.email}</strong>`)
    const answer = await browser.submit(link, link, newPasswords)
    expect(answer).toMatchObject({ status: 303, location: '/sign-in?notice=password-set' })
    expect((await member.browser.get('/account')).status).toBe(303)
    expect((await signIn(member, browser)).status).toBe(400)
    const fields = { email: member.email, password: newPasswords.new_password }
    expect((await browser.submit('/sign-in', '/sign-in', fields)).status).toBe(303)
  })

  it('keeps its link out of the log, and only a hash of it in the table', async () => {
    const member = await createMember(service)
    await ask(member.email)
    const link = await findLink(member.email)
    const browser = createBrowser(service.baseUrl)
    await browser.get(link)
    await browser.get(`/${link}/more`)
    await browser.submit(link, link, newPasswords)
    await expect.poll(() => lines.filter((line) => line.includes('/reset-password/…')).length).toBeGreaterThanOrEqual(4)
    const token = link.split('/').at(-1) ?? ''
    expect(lines.join('')).not.toContain(token)
    const rows = await service.deps.db.selectFrom('password_resets').selectAll().execute()
    expect(rows.map(({ hash }) => hash.toString())).not.toContain(token)
  })

  it('has links that work once, also of two that come at once', async () => {
    const member = await createMember(service)
    await ask(member.email)
    const link = await findLink(member.email)
    const browsers = [createBrowser(service.baseUrl), createBrowser(service.baseUrl)]
    // Both have the page before one of them uses it.
    const pages = await Promise.all(browsers.map((browser) => browser.get(link)))
    const fields = pages.map(({ html }) => ({ ...readHiddenFields(html, link), ...newPasswords }))
    const answers = await Promise.all(browsers.map((browser, index) => browser.post(link, fields[index] ?? {})))
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 404])
    expect(await createBrowser(service.baseUrl).get(link)).toMatchObject({
      status: 404,
      error: 'This link was used already, or is too old.',
    })
  })

  it('can be replaced by link and by its owner at once: neither waits for the other forever', async () => {
    const member = await createMember(service)
    await ask(member.email)
    const link = await findLink(member.email)
    const { db } = service.deps
    const trx = await db.startTransaction().execute()
    await updatePasswordHash(trx, { userId: member.userId, passwordHash: 'of the owner', at: new Date(now) })
    const answer = member.browser.submit(link, link, newPasswords)
    await expect
      .poll(async () => {
        const waiting = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
        return waiting.rows[0]?.n
      })
      .toBe(1)
    await deleteCredentialsUnderway(trx, { userId: member.userId })
    await trx.commit().execute()
    expect((await answer).status).toBe(404)
  })

  it('has links that work for an hour', async () => {
    const member = await createMember(service)
    await ask(member.email)
    const link = await findLink(member.email)
    now += 3_599_000
    expect((await createBrowser(service.baseUrl).get(link)).status).toBe(200)
    now += 1_000
    expect((await createBrowser(service.baseUrl).get(link)).status).toBe(404)
  })

  it('has links that end when another one is used, and when the password is changed', async () => {
    const member = await createSignedInMember(service)
    await ask(member.email)
    const first = await findLink(member.email)
    await ask(member.email)
    const second = await findLink(member.email)
    const browser = createBrowser(service.baseUrl)
    expect((await browser.submit(second, second, newPasswords)).status).toBe(303)
    expect((await browser.get(first)).status).toBe(404)
  })

  it('needs a good new one, twice the same; until then the link stays good', async () => {
    const member = await createMember(service)
    await ask(member.email)
    const link = await findLink(member.email)
    const browser = createBrowser(service.baseUrl)
    const different = { ...newPasswords, repeated_password: 'something else here' }
    const answer = await browser.submit(link, link, different)
    expect(answer).toMatchObject({ status: 400, error: 'The repeated password is not the same as the first.' })
    const short = { new_password: 'short', repeated_password: 'short' }
    expect((await browser.submit(link, link, short)).error).toBe('The password must have at least 12 characters.')
    expect((await browser.submit(link, link, newPasswords)).status).toBe(303)
  })

  it('keeps the second factor on', async () => {
    const member = await createMember(service)
    const at = new Date(now)
    await service.deps.db
      .updateTable('users')
      .set({ totp_secret: Buffer.alloc(20), totp_enabled_at: at })
      .where('id', '=', member.userId)
      .execute()
    await ask(member.email)
    const link = await findLink(member.email)
    await member.browser.submit(link, link, newPasswords)
    const fields = { email: member.email, password: newPasswords.new_password }
    expect((await member.browser.submit('/sign-in', '/sign-in', fields)).location).toBe('/sign-in/code')
  })
})

describe('an account that nobody has vouched for', () => {
  it('becomes that of whoever has the mailbox; what was set up in it before is gone', async () => {
    const email = 'squatted@example.com'
    const account = await createAccount(service.deps.db, {
      email,
      displayName: null,
      jwtIssuer: service.baseUrl,
      passwordHash: await hashPassword(password),
      isEmailVerified: false,
    })
    const userId = account?.user.id ?? 0
    await service.deps.db
      .updateTable('users')
      .set({ totp_secret: Buffer.alloc(20), totp_enabled_at: new Date(now) })
      .where('id', '=', userId)
      .execute()
    const machine = await service.deps.db
      .insertInto('service_accounts')
      .values({ organization_id: account?.organization.id ?? 0, name: 'left open', role: 'admin' })
      .returning('id')
      .executeTakeFirstOrThrow()
    const { key } = await createApiKey(service.deps.db, {
      holder: { serviceAccountId: machine.id },
      name: 'left open',
      permission: 'full',
      expiresAt: null,
    })
    expect(await service.client(key).listApps()).toEqual({ apps: [] })
    await ask(email)
    const link = await findLink(email)
    const browser = createBrowser(service.baseUrl)
    expect((await browser.submit(link, link, newPasswords)).status).toBe(303)
    await expect(service.client(key).listApps()).rejects.toMatchObject({ status: 401 })
    const fields = { email, password: newPasswords.new_password }
    expect((await browser.submit('/sign-in', '/sign-in', fields)).location).toBe('/account')
    const user = await service.deps.db
      .selectFrom('users')
      .selectAll()
      .where('id', '=', userId)
      .executeTakeFirstOrThrow()
    expect(user.email_verified_at).not.toBeNull()
    expect(user.totp_enabled_at).toBeNull()
  })
})

function median(values: number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

describe('asking for a link', () => {
  it('answers the same, and as fast, whether there is an account', async () => {
    const member = await createMember(service)
    const measure = async (email: string) => {
      const browser = createBrowser(service.baseUrl)
      const { html } = await browser.get('/reset-password')
      const token = /name="form_token" value="([^"]*)"/.exec(html)?.[1] ?? ''
      const startedAt = performance.now()
      const answer = await browser.post('/reset-password', { form_token: token, email })
      return { ms: performance.now() - startedAt, status: answer.status, html: answer.html }
    }
    const known: number[] = []
    const unknown: number[] = []
    for (let run = 0; run < 5; run += 1) {
      await service.deps.db.deleteFrom('sign_in_limits').execute()
      const [one, other] = [await measure(member.email), await measure('nobody@example.com')]
      expect([other.status, other.html]).toEqual([one.status, one.html])
      known.push(one.ms)
      unknown.push(other.ms)
    }
    const ratio = median(known) / median(unknown)
    expect(ratio).toBeGreaterThan(0.5)
    expect(ratio).toBeLessThan(2)
    // Also the fastest answer takes longer than what is done for an account.
    expect(Math.min(...unknown)).toBeGreaterThanOrEqual(240)
  })

  it('is possible three times an hour for one e-mail, whether there is an account', async () => {
    await service.deps.db.deleteFrom('sign_in_limits').execute()
    const member = await createMember(service)
    for (const email of [member.email, 'nobody-at-all@example.com']) {
      const answers = [await ask(email), await ask(email), await ask(email), await ask(email)]
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429])
    }
  })
})

describe('the link', () => {
  it('really arrives in the mailbox', async () => {
    await service.deps.db.deleteFrom('sign_in_limits').execute()
    // The mails of the tests before would be sent first.
    await sql`delete from pgboss.job where name = 'send-mail'`.execute(service.deps.db)
    const member = await createMember(service)
    await ask(member.email)
    const nothing = async () => undefined
    await service.deps.jobs.work({
      sweepBlobs: nothing,
      removeDeviceEvents: nothing,
      removeOrganization: nothing,
      analyzeRelease: nothing,
      requestMissingAnalyses: nothing,
      resumeRemovals: nothing,
      maintain: nothing,
      sendMail: (mail) => sendMail(service.deps, mail),
    })
    const find = () => mailServer.mails.find(({ to }) => to.includes(member.email))
    await expect.poll(find, { timeout: 20_000 }).toBeDefined()
    const mail = find()
    const link = readLink(mail === undefined ? '' : readText(mail))
    expect((await member.browser.submit(link, link, newPasswords)).status).toBe(303)
  }, 30_000)
})
