import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestService, type TestService } from '../support/test-service.ts'

let service: TestService
const logged: Record<string, unknown>[] = []

beforeAll(async () => {
  const log = pino({ level: 'error' }, { write: (line: string) => void logged.push(JSON.parse(line)) })
  service = await createTestService({ log, config: { requestsPerMinute: 100_000 } })
})
afterAll(() => service.stop())

const post = (path: string, form: Record<string, string>) =>
  fetch(service.baseUrl + path, { method: 'POST', redirect: 'manual', body: new URLSearchParams(form) })

describe('a character that no text has', () => {
  const client = { client_id: 'godwit-cli' }
  const codeGrant = { ...client, grant_type: 'authorization_code', redirect_uri: 'http://127.0.0.1:1/callback' }

  it.each([
    ['/oauth/token', { ...client, grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: '\0' }],
    ['/oauth/token', { ...codeGrant, code: '\0', code_verifier: 'v'.repeat(43) }],
    ['/oauth/token', { ...client, grant_type: 'refresh_token', refresh_token: '\0' }],
    ['/oauth/token', { grant_type: 'refresh_token', refresh_token: 'x', client_id: '\0' }],
    ['/oauth/revoke', { ...client, token: '\0' }],
    ['/oauth/device', { ...client, login_hint: '\0' }],
    ['/oauth/device', { ...client, nonce: '\0', acr_values: '\0' }],
    ['/token', { grant_type: 'refresh_token', refresh_token: '\0' }],
    ['/token', { grant_type: 'authorization_code', code: '\0' }],
    ['/device', { user_code: '\0', xsrf: 'x' }],
  ])('is no fault of ours at %s with %j', async (path, form) => {
    const response = await post(path, form as Record<string, string>)
    expect(response.status).toBeLessThan(500)
    expect(logged).toEqual([])
  })

  it.each(['state', 'nonce', 'login_hint', 'ui_locales', 'client_id', 'scope', 'redirect_uri'])(
    'is no fault of ours in %s of an authorization request',
    async (name) => {
      const query = new URLSearchParams({
        client_id: 'godwit-cli',
        redirect_uri: 'http://127.0.0.1:1/callback',
        response_type: 'code',
        scope: 'openid',
        code_challenge: 'c'.repeat(43),
        code_challenge_method: 'S256',
        [name]: '\0',
      })
      const response = await fetch(`${service.baseUrl}/oauth/authorize?${query}`, { redirect: 'manual' })
      expect(response.status).toBeLessThan(500)
      expect(logged).toEqual([])
    },
  )
})

describe('a device form without its session', () => {
  it.each([{}, { cookie: 'godwit_oidc=unknown; godwit_oidc.sig=unknown' }])(
    'is refused with a page',
    async (headers) => {
      const body = new URLSearchParams({ user_code: 'ABCD-EFGH', xsrf: 'x' })
      const response = await fetch(`${service.baseUrl}/device`, {
        method: 'POST',
        headers: headers as Record<string, string>,
        body,
      })
      expect(response.status).toBe(400)
      expect(response.headers.get('content-type')).toContain('text/html')
      expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
      expect(logged).toEqual([])
    },
  )
})

describe('somebody who has not signed in', () => {
  it('leaves no large rows', async () => {
    const response = await post('/oauth/device', {
      client_id: 'godwit-cli',
      scope: 'openid',
      login_hint: 'x'.repeat(50_000),
    })
    expect(response.status).toBe(400)
    const rows = await service.deps.db.selectFrom('authorization_records').select('payload').execute()
    for (const { payload } of rows) expect(JSON.stringify(payload).length).toBeLessThan(10_000)
  })

  it('leaves few: the pages and endpoints of the authorization server have a limit of their own', async () => {
    const statuses: number[] = []
    for (let i = 0; i < 320; i += 1) statuses.push((await fetch(`${service.baseUrl}/device`)).status)
    expect(statuses.at(-1)).toBe(429)
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(300)
  })
})
