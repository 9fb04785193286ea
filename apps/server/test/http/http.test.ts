import { once } from 'node:events'
import { connect } from 'node:net'
import { Writable } from 'node:stream'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let person: TestAccount
let lines: string[] = []

beforeAll(async () => {
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  service = await createTestService({ log: pino({ level: 'trace' }, sink), config: { requestsPerMinute: 5 } })
  person = await service.createAccount()
})
afterAll(() => service.stop())

function get(path: string, headers: Record<string, string> = {}) {
  return fetch(service.baseUrl + path, { headers })
}

describe('the request id', () => {
  it('is the caller’s when it can stand in a log line, in the answer and in the log', async () => {
    lines = []
    const response = await get('/healthz', { 'x-request-id': 'ci-run/42:a' })
    expect(response.headers.get('x-request-id')).toBe('ci-run/42:a')
    await expect.poll(() => lines.join('')).toContain('"reqId":"ci-run/42:a"')
  })

  it('is made otherwise', async () => {
    for (const sent of ['with space', 'x'.repeat(129), undefined]) {
      const response = await get('/healthz', sent === undefined ? {} : { 'x-request-id': sent })
      expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    }
  })
})

describe('the rate limit', () => {
  it('is per caller: 429 with Retry-After, while others go on', async () => {
    const other = await service.createAccount()
    for (let request = 0; request < 5; request += 1) await person.api.listApps()
    await expect(person.api.listApps()).rejects.toMatchObject({ status: 429, code: 'rate_limited' })
    const refused = await get('/api/v1/apps', { authorization: `Bearer ${person.apiKey}` })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60)
    await other.api.listApps()
  })

  it('slows guessing of credentials by address, without refusing good ones behind the same address', async () => {
    const other = await service.createAccount()
    const statuses: number[] = []
    for (let request = 0; request < 7; request += 1) {
      statuses.push((await get('/api/v1/apps', { authorization: 'Bearer sb_api_guess' })).status)
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429])
    await other.api.listApps()
  })
})

describe('a fault of the server', () => {
  it('is a 500 that tells nothing but the request id, which the log has with the reason', async () => {
    const faulty = await service.createAccount()
    const appId = await createTestApp(faulty)
    lines = []
    await service.deps.db.schema.alterTable('channels').renameTo('channels_away').execute()
    const response = await get(`/api/v1/apps/${appId}/channels`, { authorization: `Bearer ${faulty.apiKey}` })
    await service.deps.db.schema.alterTable('channels_away').renameTo('channels').execute()
    expect(response.status).toBe(500)
    const id = response.headers.get('x-request-id')
    const body = await response.json()
    expect(body).toEqual({ code: 'internal', message: expect.any(String), details: `request id ${id}` })
    await expect.poll(() => lines.find((line) => line.includes('request failed'))).toContain(`"reqId":"${id}"`)
    expect(lines.join('')).toContain('relation \\"channels\\" does not exist')
    expect(lines.join('')).not.toContain(faulty.apiKey)
  })
})

describe('probes and documents', () => {
  it('answer without a credential', async () => {
    expect((await get('/healthz')).status).toBe(200)
    expect((await get('/readyz')).status).toBe(200)
    const openApi = await get('/openapi.json')
    expect(openApi.headers.get('content-type')).toContain('application/json')
    expect(await openApi.json()).toMatchObject({ openapi: '3.1.0', info: { version: '1.0.0' } })
  })

  it('offer an API catalog that links to the description (RFC 9727)', async () => {
    const response = await get('/.well-known/api-catalog')
    expect(response.headers.get('content-type')).toContain('application/linkset+json')
    const { linkset } = (await response.json()) as { linkset: { anchor: string; 'service-desc': { href: string }[] }[] }
    expect(linkset[0]?.anchor).toBe(`${service.baseUrl}/api/v1`)
    expect((await fetch(linkset[0]?.['service-desc'][0]?.href ?? '')).status).toBe(200)
  })
})

describe('logs', () => {
  it('have no query, which may carry a signature', async () => {
    lines = []
    await get('/downloads/abc?signature=verysecret')
    await expect.poll(() => lines.join('')).toContain('/downloads/abc')
    expect(lines.join('')).not.toContain('verysecret')
  })
})

describe('what is hardly a request', () => {
  it.each(['/api/v1/apps/%zz', `/api/v1/apps/${'x'.repeat(300)}`, '/%'])('%s gets an ErrorResponse', async (path) => {
    const response = await get(path)
    expect([400, 401, 404, 414]).toContain(response.status)
    expect(await response.json()).toMatchObject({ code: expect.any(String), message: expect.any(String) })
  })

  it.each([
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['endless headers', `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 413],
  ])('%s gets an ErrorResponse and its connection closed', async (_name, text, status) => {
    const socket = connect(Number(new URL(service.baseUrl).port), '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.write(text)
    await once(socket, 'close')
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({ code: expect.any(String) })
  })
})
