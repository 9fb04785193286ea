import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { readRealArchive } from '../analysis/releases.ts'
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../support/otlp-receiver.ts'
import { createTestApp, createTestRelease, uploadTestReleaseArtifact } from '../support/publishing.ts'
import { adminKey, createServerProcess, type ServerProcess } from '../support/server-process.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const callerSpan = 'b7ad6b7169203331'
const clientId = '4d1d6b52-9b1c-4b02-8f4f-6c1d7c6a9f77'
const email = 'traced-person@example.com'
const printLoads = new URL('print-loads.mjs', import.meta.url).href

function callAsTraced(server: ServerProcess, path: string, init: RequestInit = {}, flags = '01') {
  const headers = { authorization: `Bearer ${adminKey}`, traceparent: `00-${traceId}-${callerSpan}-${flags}` }
  return fetch(`${server.baseUrl}${path}`, { ...init, headers })
}

function checkBody(appId: string): string {
  const check = { app_id: appId, channel: 'stable', release_version: '1.0.0', platform: 'android', arch: 'aarch64' }
  return JSON.stringify({ ...check, client_id: clientId })
}

describe('traces', () => {
  let receiver: OtlpReceiver
  let server: ServerProcess
  let appId: string
  let organizationId: number
  let output: string

  const find = (name: string, test: (span: ReceivedSpan) => boolean = () => true) =>
    receiver.spans.find((span) => span.name === name && test(span))
  const childrenOf = (parent: ReceivedSpan | undefined) =>
    receiver.spans.filter((span) => span.parentSpanId === parent?.spanId && span.traceId === parent?.traceId)

  beforeAll(async () => {
    receiver = await startOtlpReceiver()
    server = await createServerProcess({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_SERVICE_NAME: 'push-of-ours',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      GODWIT_ADMIN_EMAIL: email,
    })
    await server.start()
    organizationId = (await server.api.listOrganizations()).organizations[0]?.organization.id ?? 0
    appId = await createTestApp({ api: server.api, organizationId })
    const releaseId = await createTestRelease(server.api, appId)
    const bytes = await readRealArchive('aab-basic.aab')
    await uploadTestReleaseArtifact(server.api, { appId, releaseId }, { bytes })
    const expectAnalyzed = async () =>
      expect(await server.api.getApp({ params: { appId } })).toHaveProperty('latest_releases.android')
    await vi.waitFor(expectAnalyzed, { timeout: 20_000, interval: 200 })
    await callAsTraced(server, `/api/v1/apps/${appId}/releases`)
    await callAsTraced(server, '/api/v1/patches/check', { method: 'POST', body: checkBody(appId) })
    await callAsTraced(server, '/api/v1/apps/unknown', {}, '00')
    server.signal('SIGTERM')
    expect(await server.exited()).toBe(0)
    output = server.output()
  })
  afterAll(async () => {
    await server.remove()
    receiver.close()
  })

  it('arrive when the server stops, from the service and with the attributes that the environment names', () => {
    expect(receiver.resources[0]).toMatchObject({
      'service.name': 'push-of-ours',
      'service.version': '0.1.0',
      'deployment.environment.name': 'test',
    })
  })

  it('go on with the trace of the caller, and nest each statement in its request', () => {
    const request = find('GET /api/v1/apps/{appId}/releases')
    expect(request).toMatchObject({
      traceId,
      parentSpanId: callerSpan,
      kind: 2,
      attributes: {
        'http.request.method': 'GET',
        'http.route': '/api/v1/apps/{appId}/releases',
        'http.response.status_code': 200,
      },
    })
    const statements = childrenOf(request)
    expect(statements.length).toBeGreaterThan(1)
    for (const statement of statements) {
      expect(statement).toMatchObject({ name: 'SQL SELECT', kind: 3, attributes: { 'db.system.name': 'postgresql' } })
      expect(statement.endTimeUnixNano).toBeGreaterThanOrEqual(statement.startTimeUnixNano)
    }
  })

  it('begin a new one where the caller has none, also behind a body', () => {
    const request = find('POST /api/v1/apps')
    expect(request?.parentSpanId ?? '').toBe('')
    expect(request?.traceId).not.toBe(traceId)
    const statements = childrenOf(request).map(({ name }) => name)
    expect(statements).toContain('SQL SELECT')
    expect(statements).toContain('SQL INSERT')
    expect(statements).toContain('SQL COMMIT')
  })

  it('show a check with what it loaded', () => {
    const check = find('POST /api/v1/patches/check')
    expect(check).toMatchObject({ traceId, parentSpanId: callerSpan, attributes: { 'http.response.status_code': 200 } })
    expect(childrenOf(check).map(({ name }) => name)).toContain('SQL SELECT')
  })

  it('lead from an upload to its blob, its job, and the analysis', () => {
    const upload = find('POST /uploads/{uploadId}')
    expect(childrenOf(upload).map(({ name }) => name)).toEqual(expect.arrayContaining(['blob write', 'blob finish']))
    const job = find('job analyze-release', (span) => span.traceId === upload?.traceId)
    expect(job).toMatchObject({ parentSpanId: upload?.spanId, kind: 5 })
    const analysis = childrenOf(job).find(({ name }) => name === 'analyze archive')
    expect(childrenOf(analysis).map(({ name }) => name)).toContain('blob read')
  })

  it('follow the decision of the caller not to record', () => {
    expect(find('GET /api/v1/apps/{appId}', (span) => span.attributes['http.response.status_code'] === 404)).toBe(
      undefined,
    )
  })

  it('carry no credential, id, address or value', () => {
    const text = Buffer.concat(receiver.bodies).toString()
    expect(text).toContain('"db.query.text"')
    for (const secret of [adminKey, adminKey.slice(10, 40), email, clientId, appId, '127.0.0.1', 'signature=']) {
      expect(text).not.toContain(secret)
    }
  })

  it('are named in the log of their requests', () => {
    const lines = output.split('\n').filter((line) => line.startsWith('{'))
    const logged = lines.map((line) => JSON.parse(line)).find((line) => line.traceId === traceId)
    expect(logged).toMatchObject({
      level: 30,
      reqId: expect.any(String),
      method: 'GET',
      route: '/api/v1/apps/{appId}/releases',
      status: 200,
      durationMs: expect.any(Number),
    })
  })
})

describe('a server', () => {
  it('does not even read the libraries unless a variable asks for traces', async () => {
    const server = await createServerProcess({ NODE_OPTIONS: `--import ${printLoads}`, OTEL_SERVICE_NAME: 'quiet' })
    await server.start()
    await callAsTraced(server, '/api/v1/organizations')
    expect(server.output()).not.toContain('OpenTelemetry is read')
    await server.remove()
  })

  it('sends protobuf unless told otherwise, and stops in time when the collector is gone', async () => {
    const receiver = await startOtlpReceiver()
    const server = await createServerProcess({
      NODE_OPTIONS: `--import ${printLoads}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    })
    await server.start()
    expect(server.output()).toContain('OpenTelemetry is read')
    await callAsTraced(server, '/api/v1/organizations')
    await expect.poll(() => receiver.contentTypes, { timeout: 15_000 }).toContain('application/x-protobuf')
    expect(Buffer.concat(receiver.bodies).toString('latin1')).toContain('/api/v1/organizations')
    receiver.close()
    await callAsTraced(server, '/api/v1/organizations')
    const stoppedAt = performance.now()
    server.signal('SIGTERM')
    expect(await server.exited()).toBe(0)
    // The exporter would try for 10 s.
    expect(performance.now() - stoppedAt).toBeLessThan(8000)
    await server.remove()
  })
})
