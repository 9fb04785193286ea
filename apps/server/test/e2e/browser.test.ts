import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import axe from 'axe-core'
import { Secret, TOTP } from 'otpauth'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { setPassword } from '../../src/passwords/actions.ts'
import { launchChromium } from '../support/chromium.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

const password = 'eleven days without landing'
/** Where the pages are kept as pictures, for a person to look at. */
const screenshotsDir = process.env.GODWIT_TEST_SCREENSHOTS

const sizes = [
  ['phone', { width: 360, height: 740 }],
  ['desktop', { width: 1280, height: 800 }],
] as const

let service: TestService
let chromium: Browser
let client: Server
let clientUrl: string
let arrived: URL[]
let contexts: BrowserContext[] = []

beforeAll(async () => {
  service = await createTestService()
  chromium = await launchChromium()
  // The command line client waits for the browser on a port of this machine.
  client = createServer((request, response) => {
    const url = new URL(request.url ?? '/', clientUrl)
    if (url.pathname === '/callback') arrived.push(url)
    response.end('You can close this window.')
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => client.once('listening', resolve))
  clientUrl = `http://localhost:${(client.address() as AddressInfo).port}`
})
afterAll(async () => {
  await chromium.close()
  client.close()
  await service.stop()
})
afterEach(async () => {
  for (const context of contexts) await context.close()
  contexts = []
})

type Size = (typeof sizes)[number][1]

/** A page in a browser of its own. What the browser complains about, such as a breach of the security policy, fails the test. */
async function openPage(
  options: { size?: Size; scripts?: boolean } = {},
): Promise<{ page: Page; complaints: string[] }> {
  arrived = []
  const context = await chromium.newContext({
    viewport: options.size ?? sizes[1][1],
    javaScriptEnabled: options.scripts ?? true,
    baseURL: service.baseUrl,
    // Our policy forbids every script, also the one that looks for barriers.
    bypassCSP: options.scripts === true,
  })
  contexts.push(context)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    // A form that is refused answers with a 400, which the console mentions.
    if (message.type() === 'error' && !message.text().includes('status of 400')) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  return { page, complaints }
}

async function createPerson(): Promise<TestAccount> {
  const account = await service.createAccount()
  await setPassword(service.deps, { userId: account.userId, password })
  return account
}

const loginUrl = () => `/login?continue=${encodeURIComponent(`${clientUrl}/callback`)}`

async function fillSignIn(page: Page, email: string, secret = password): Promise<void> {
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(secret)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

async function takePicture(page: Page, name: string): Promise<void> {
  if (screenshotsDir === undefined) return
  await page.screenshot({ path: join(screenshotsDir, `${name}.png`), fullPage: true })
}

/** Barriers to people who see, hear or point differently (WCAG 2.2 A and AA, as far as a program can tell). */
async function findBarriers(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(async () => {
    const { axe: loaded } = globalThis as unknown as { axe: typeof axe }
    return await loaded.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
  })
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
}

const overflows = (page: Page) => page.evaluate('document.documentElement.scrollWidth > window.innerWidth')

async function exchange(code: string | null): Promise<Response> {
  return await fetch(`${service.baseUrl}/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'authorization_code', code: code ?? '' }),
  })
}

async function generateCode(page: Page): Promise<string> {
  const text = (await page.locator('code').textContent()) ?? ''
  return new TOTP({ secret: Secret.fromBase32(text.replaceAll(/\s/g, '')) }).generate()
}

describe('signing in to the command line client', () => {
  it.each(sizes)('works on a %s, without scripts', async (_name, size) => {
    const account = await createPerson()
    const { page, complaints } = await openPage({ size, scripts: false })
    await page.goto(loginUrl())
    await fillSignIn(page, account.email)
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.waitForURL(`${clientUrl}/callback?*`)
    expect(arrived).toHaveLength(1)
    const answer = await exchange(arrived[0]?.searchParams.get('code') ?? null)
    expect(answer.status).toBe(200)
    const { access_token: token } = (await answer.json()) as { access_token: string }
    expect(await service.client(token).getCurrentUser()).toMatchObject({ email: account.email })
    expect(complaints).toEqual([])
  })

  it('brings the word of who does not want it', async () => {
    const account = await createPerson()
    const { page } = await openPage()
    await page.goto(loginUrl())
    await fillSignIn(page, account.email)
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.waitForURL(`${clientUrl}/callback?*`)
    expect(arrived[0]?.search).toBe('?error=access_denied')
  })
})

describe('a second factor', () => {
  it('is set up, asked for from then on, and turned off again', async () => {
    const account = await createPerson()
    const { page, complaints } = await openPage({ scripts: false })
    await page.goto('/account')
    await fillSignIn(page, account.email)
    await page.getByRole('link', { name: 'Set up an authenticator app' }).click()
    await page.getByLabel('Current password').fill(password)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('img', { name: /QR code/ }).waitFor()
    const secret = (await page.locator('code').textContent()) ?? ''
    await page.getByRole('textbox', { name: 'Code' }).fill(await generateCode(page))
    await page.getByLabel('Current password').fill(password)
    await page.getByRole('button', { name: 'Turn on' }).click()
    await page.getByText('The second factor is on').waitFor()

    const other = await openPage({ scripts: false })
    await other.page.goto(loginUrl())
    await fillSignIn(other.page, account.email)
    // The code of the present half minute has been used to turn it on: the next one is accepted a little early.
    const totp = new TOTP({ secret: Secret.fromBase32(secret.replaceAll(/\s/g, '')) })
    await other.page.getByRole('textbox', { name: 'Code' }).fill(totp.generate({ timestamp: Date.now() + 30_000 }))
    await other.page.getByRole('button', { name: 'Sign in' }).click()
    await other.page.getByRole('button', { name: 'Allow' }).click()
    await other.page.waitForURL(`${clientUrl}/callback?*`)
    const answer = (await (await exchange(arrived[0]?.searchParams.get('code') ?? null)).json()) as {
      access_token: string
    }
    const [, claims = ''] = answer.access_token.split('.')
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({ is_mfa: true })

    await page.getByRole('link', { name: 'Turn off' }).click()
    await page.getByLabel('Current password').fill(password)
    await page.getByRole('button', { name: 'Turn off' }).click()
    await page.getByText('The second factor is off').waitFor()
    expect([...complaints, ...other.complaints]).toEqual([])
  })
})

describe('signing out', () => {
  it('ends the session: the account page asks to sign in again, also by the back button', async () => {
    const account = await createPerson()
    const { page } = await openPage({ scripts: false })
    await page.goto('/account')
    await fillSignIn(page, account.email)
    await page.getByRole('heading', { name: 'Your account' }).waitFor()
    await page.getByRole('button', { name: 'Sign out', exact: true }).first().click()
    await page.getByText('You are signed out').waitFor()
    await page.goBack()
    expect(await page.getByLabel('Password').count()).toBeGreaterThan(0)
    await page.goto('/account')
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
  })
})

describe('connecting a device', () => {
  it('takes the code by a link, without scripts', async () => {
    const account = await createPerson()
    const started = await fetch(`${service.baseUrl}/oauth/device`, {
      method: 'POST',
      body: new URLSearchParams({ client_id: 'godwit-cli', scope: 'openid' }),
    })
    const { verification_uri_complete: url } = (await started.json()) as { verification_uri_complete: string }
    const { page, complaints } = await openPage({ scripts: false })
    await page.goto(url)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Is this your device?' }).waitFor()
    await page.getByRole('button', { name: 'Continue' }).click()
    await fillSignIn(page, account.email)
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByRole('heading', { name: 'Signed in' }).waitFor()
    expect(complaints).toEqual([])
  })
})

describe('every page', () => {
  it.each(sizes)('has no barrier and fits a %s', async (name, size) => {
    const account = await createPerson()
    const { page } = await openPage({ size, scripts: true })
    const found: Record<string, unknown> = {}
    const look = async (title: string) => {
      await takePicture(page, `${title}-${name}`)
      found[title] = { barriers: await findBarriers(page), overflows: await overflows(page) }
    }
    await page.goto(loginUrl())
    await look('1-sign-in')
    await fillSignIn(page, account.email, 'not the password at all')
    await look('2-sign-in-wrong')
    await fillSignIn(page, account.email)
    await look('3-consent')
    await page.goto('/account')
    await look('4-account')
    await page.getByRole('link', { name: 'Set up an authenticator app' }).click()
    await page.getByLabel('Current password').fill(password)
    await look('5-second-factor')
    await page.getByRole('button', { name: 'Continue' }).click()
    await look('6-second-factor-code')
    const secret = (await page.locator('code').textContent()) ?? ''
    await page.getByRole('textbox', { name: 'Code' }).fill(await generateCode(page))
    await page.getByLabel('Current password').fill(password)
    await page.getByRole('button', { name: 'Turn on' }).click()
    await look('7-account-second-factor')
    await page.getByRole('button', { name: 'Sign out', exact: true }).first().click()
    await look('8-signed-out')
    await fillSignIn(page, account.email)
    await look('9-code')
    expect(secret).not.toBe('')
    await page.goto('/device')
    await look('10-device')
    await page.goto('/invitations/unknown')
    await look('11-not-found')
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.goto('/sign-in')
    await look('12-dark')
    const clean = Object.fromEntries(Object.keys(found).map((title) => [title, { barriers: [], overflows: false }]))
    expect(found).toEqual(clean)
  })
})
