import { createClient } from '@godwit/sdk'
import { decodeJwt } from 'jose'
import * as openid from 'openid-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { nativeClientId } from '../../src/authorization-server/clients.ts'
import { type AlternatingDoor, startAlternatingDoor } from '../support/alternating-door.ts'
import { type Browser, createBrowser, type PageAnswer, readHiddenFields } from '../support/browser.ts'
import { createServerProcess, type ServerProcess } from '../support/server-process.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { createMember, type Member, password, signIn, turnOnSecondFactor } from './accounts.ts'

const stepMs = 30_000
const commandLineTarget = 'http://localhost:53682/callback'
const nativeTarget = 'http://127.0.0.1:53682/callback'

let door: AlternatingDoor
let service: TestService
let other: ServerProcess

/** Two instances on one database, of which each gets every second request. */
beforeAll(async () => {
  door = await startAlternatingDoor()
  service = await createTestService({ config: { publicUrl: door.baseUrl } })
  other = await createServerProcess({ DATABASE_URL: service.connectionString, GODWIT_PUBLIC_URL: door.baseUrl })
  await other.start()
  door.targets.push(service.baseUrl, other.baseUrl)
}, 60_000)
afterAll(async () => {
  await other?.remove()
  await door?.stop()
  await service?.stop()
  // Every flow took more than one request, and no two of them in a row met the same instance.
  const [first = 0, second = 0] = door.handed
  expect(Math.abs(first - second)).toBeLessThanOrEqual(1)
})

const createMemberAtDoor = () => createMember({ ...service, baseUrl: door.baseUrl })

/** Opens a page, and goes where it leads as long as that is here. */
async function open(browser: Browser, url: string): Promise<PageAnswer> {
  return await follow(browser, await browser.get(pathOf(url)))
}

async function follow(browser: Browser, answer: PageAnswer): Promise<PageAnswer> {
  const { location } = answer
  if (location === undefined || new URL(location, door.baseUrl).origin !== door.baseUrl) return answer
  return await open(browser, location)
}

function pathOf(url: string): string {
  const { pathname, search } = new URL(url, door.baseUrl)
  return pathname + search
}

/** Sends the form of a page, with what a person fills in. */
async function submit(browser: Browser, page: PageAnswer, fields: Record<string, string>): Promise<PageAnswer> {
  const action = /<form method="post" action="([^"]+)"/.exec(page.html)?.[1] ?? ''
  return await follow(
    browser,
    await browser.post(pathOf(action), { ...readHiddenFields(page.html, action), ...fields }),
  )
}

/** Both instances take the token. */
async function expectBothToKnow(token: string, userId: number): Promise<void> {
  for (const baseUrl of door.targets)
    expect(await createClient({ baseUrl, token }).getCurrentUser()).toMatchObject({ id: userId })
}

async function expectBothToRefuse(token: string): Promise<void> {
  for (const baseUrl of door.targets)
    await expect(createClient({ baseUrl, token }).getCurrentUser()).rejects.toMatchObject({ status: 401 })
}

type Tokens = { access_token: string; refresh_token: string }

async function ask(fields: Record<string, string>): Promise<Response> {
  return await fetch(`${door.baseUrl}/token`, { method: 'POST', body: new URLSearchParams(fields) })
}

/** As the command line client does, with a browser in which nobody is signed in. */
async function signInCommandLine(member: Member): Promise<Tokens> {
  const { browser, email } = member
  const form = await open(browser, `/login?continue=${encodeURIComponent(commandLineTarget)}`)
  const consent = await submit(browser, form, { email, password })
  const done = await submit(browser, consent, { decision: 'allow' })
  const code = new URL(done.location ?? '').searchParams.get('code') ?? ''
  const answer = await ask({ grant_type: 'authorization_code', code })
  expect(answer.status).toBe(200)
  return (await answer.json()) as Tokens
}

describe('with every request at another instance', () => {
  it('a browser signs in by password, and out of both', async () => {
    const member = await createMemberAtDoor()
    expect(await signIn(member)).toMatchObject({ status: 303, location: '/account' })
    for (const _instance of door.targets) expect((await member.browser.get('/account')).html).toContain(member.email)
    await member.browser.submit('/account', '/sign-out')
    for (const _instance of door.targets) expect((await member.browser.get('/account')).status).toBe(303)
  })

  it('the second factor is turned on, asked for, and takes a code once', async () => {
    const member = await createMemberAtDoor()
    await signIn(member)
    const showCode = await turnOnSecondFactor(member)
    const nextCode = showCode(new Date(Date.now() + stepMs))
    const enter = async (browser: Browser) => {
      expect(await signIn(member, browser)).toMatchObject({ location: '/sign-in/code' })
      return await browser.submit('/sign-in/code', '/sign-in/code', { code: nextCode })
    }
    const browser = createBrowser(door.baseUrl)
    expect(await enter(browser)).toMatchObject({ status: 303, location: '/account' })
    for (const _instance of door.targets) expect((await browser.get('/account')).html).toContain(member.email)
    expect(await enter(createBrowser(door.baseUrl))).toMatchObject({ error: expect.stringMatching(/code/i) })
  })

  it('the command line signs in, refreshes, and is signed out when a code comes twice', async () => {
    const member = await createMemberAtDoor()
    let tokens = await signInCommandLine(member)
    await expectBothToKnow(tokens.access_token, member.userId)
    for (let round = 0; round < 3; round += 1) {
      const answer = await ask({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token })
      expect(answer.status).toBe(200)
      tokens = (await answer.json()) as Tokens
      await expectBothToKnow(tokens.access_token, member.userId)
    }
    const headers = { authorization: `Bearer ${tokens.refresh_token}` }
    expect((await fetch(`${door.baseUrl}/api/logout`, { method: 'POST', headers })).status).toBe(204)
    await expectBothToRefuse(tokens.access_token)
    for (const _instance of door.targets)
      expect((await ask({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token })).status).toBe(400)
  })

  it('a standard client signs in with PKCE, refreshes, and loses the session when a refresh token comes twice', async () => {
    const member = await createMemberAtDoor()
    const options = { execute: [openid.allowInsecureRequests] }
    const issuer = new URL(door.baseUrl)
    const configuration = await openid.discovery(issuer, nativeClientId, undefined, openid.None(), options)
    const pkceCodeVerifier = openid.randomPKCECodeVerifier()
    const expectedState = openid.randomState()
    const url = openid.buildAuthorizationUrl(configuration, {
      redirect_uri: nativeTarget,
      scope: 'openid email offline_access',
      state: expectedState,
      code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    })
    const { browser, email } = member
    const form = await open(browser, url.href)
    const consent = await submit(browser, form, { email, password })
    const done = await submit(browser, consent, { decision: 'allow' })
    const back = new URL(done.location ?? '')
    const first = await openid.authorizationCodeGrant(configuration, back, { pkceCodeVerifier, expectedState })
    expect(decodeJwt(first.access_token)).toMatchObject({ iss: door.baseUrl, sub: String(member.userId) })
    await expectBothToKnow(first.access_token, member.userId)
    const second = await openid.refreshTokenGrant(configuration, first.refresh_token ?? '')
    await expectBothToKnow(second.access_token, member.userId)
    const again = openid.refreshTokenGrant(configuration, first.refresh_token ?? '')
    await expect(again).rejects.toMatchObject({ error: 'invalid_grant' })
    await expectBothToRefuse(second.access_token)
  })

  it('a device that shows a code is let in', async () => {
    const member = await createMemberAtDoor()
    await signIn(member)
    const options = { execute: [openid.allowInsecureRequests] }
    const issuer = new URL(door.baseUrl)
    const configuration = await openid.discovery(issuer, nativeClientId, undefined, openid.None(), options)
    const started = await openid.initiateDeviceAuthorization(configuration, { scope: 'openid offline_access' })
    const poll = openid.pollDeviceAuthorizationGrant(configuration, { ...started, interval: 0.1 })
    const input = await open(member.browser, started.verification_uri_complete ?? '')
    const confirm = await submit(member.browser, input, { user_code: started.user_code })
    const consent = await submit(member.browser, confirm, {})
    expect((await submit(member.browser, consent, { decision: 'allow' })).html).toContain('close this page')
    await expectBothToKnow((await poll).access_token, member.userId)
  })
})
