import {
  isTextParameter,
  listPathParameters,
  type OperationId,
  operationIds,
  type Route,
  routes,
} from '@godwit/contract'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, createTestRelease, findChannelId } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { validBodies, validEvent } from '../support/valid-bodies.ts'

const bearerOperations = operationIds.filter((id) => routes[id].access.by === 'bearer')
const bodyOperations = operationIds.filter((id) => 'body' in routes[id])
/** The icon's query is for caches alone. */
const queryOperations = operationIds.filter(
  (id) => 'query' in routes[id] && routes[id].access.by === 'bearer' && id !== 'getAppIcon',
)
const signedOperations = operationIds.filter((id) => routes[id].access.by === 'signature')
const idOperations = operationIds.filter((id) =>
  listPathParameters(routes[id].path).some((name) => !isTextParameter(name)),
)

let service: TestService
let owner: TestAccount
let stranger: TestAccount
let parameters: Record<string, string | number>

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
  stranger = await service.createAccount()
  const appId = await createTestApp(owner)
  const releaseId = await createTestRelease(owner.api, appId)
  const patch = await owner.api.createPatch({ params: { appId }, body: { release_id: releaseId } })
  const collaborator = await service.createAccount()
  parameters = {
    appId,
    releaseId,
    patchId: patch.id,
    organizationId: owner.organizationId,
    collaboratorId: collaborator.userId,
    userId: collaborator.userId,
    invitationId: 1,
    serviceAccountId: 1,
    keyId: 1,
    ruleId: 1,
    channelId: await findChannelId(owner.api, appId),
    uploadId: 'f'.repeat(32),
    blobKey: 'f'.repeat(32),
    clientId: 'f'.repeat(32),
  }
})

afterAll(async () => {
  await service.stop()
})

type CallOptions = { token?: string; body?: unknown; rawBody?: string; query?: string; params?: Record<string, string> }

async function call(
  id: OperationId,
  options: CallOptions = {},
): Promise<{ status: number; body: unknown; headers: Headers }> {
  const route: Route = routes[id]
  const values = { ...parameters, ...options.params }
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name])))
  const body = options.rawBody ?? (options.body === undefined ? undefined : JSON.stringify(options.body))
  const response = await fetch(`${service.baseUrl}${path}${options.query ?? ''}`, {
    method: route.method,
    headers: options.token === undefined ? {} : { authorization: `Bearer ${options.token}` },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers }
}

function validBody(id: OperationId): unknown {
  return id === 'createApp' ? { display_name: 'Atlas', organization_id: owner.organizationId } : validBodies[id]
}

describe('every route', () => {
  it('is known to this suite', () => {
    expect(Object.keys(validBodies).toSorted()).toEqual(operationIds.toSorted())
  })

  it.each(bodyOperations)('%s has a valid body here', (id) => {
    const route: Route = routes[id]
    expect(route.body?.safeParse(validBodies[id]).error).toBeUndefined()
  })
})

describe('without a good credential', () => {
  it.each(bearerOperations)('%s is a 401', async (id) => {
    const withoutToken = await call(id, { body: validBody(id) })
    expect(withoutToken).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
    expect(withoutToken.headers.get('www-authenticate')).toBe('Bearer')
    const withUnknownKey = await call(id, { token: `sb_api_${'x'.repeat(43)}`, body: validBody(id) })
    expect(withUnknownKey).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
    const withOtherToken = await call(id, { token: 'eyJhbGciOiJub25lIn0.e30.', body: validBody(id) })
    expect(withOtherToken).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
  })

  it.each(signedOperations)('%s is refused with a wrong signature', async (id) => {
    const query = '?expires=99999999999&signature=x'
    expect(await call(id, { query, ...(routes[id].method === 'GET' ? {} : { rawBody: 'x' }) })).toMatchObject({
      status: 403,
      body: { code: 'invalid_signature' },
    })
  })
})

describe('another tenant', () => {
  const scoped = bearerOperations.filter((id) => {
    const { access }: Route = routes[id]
    return access.by === 'bearer' && access.on !== 'caller'
  })

  it.each(scoped)('%s hides what exists behind the 404 of what does not', async (id) => {
    const hidden = await call(id, { token: stranger.apiKey, body: validBody(id) })
    const missing = await call(id, {
      token: stranger.apiKey,
      body: id === 'createApp' ? { display_name: 'Atlas', organization_id: 999_999_999 } : validBody(id),
      params: { appId: '6b3f0f5e-0000-4000-8000-000000000000', organizationId: '999999999' },
    })
    expect(hidden).toMatchObject({ status: 404, body: { code: 'not_found' } })
    expect(missing.status).toBe(hidden.status)
    expect(missing.body).toEqual(hidden.body)
  })
})

describe('malformed input', () => {
  it.each(bodyOperations)('%s refuses a body that is not what it takes', async (id) => {
    for (const rawBody of ['{', '[]', '"text"', '7', 'null']) {
      const answer = await call(id, { token: owner.apiKey, rawBody })
      expect({ rawBody, ...answer }).toMatchObject({ rawBody, status: 400, body: { code: 'invalid_request' } })
      expect(answer.body).toHaveProperty('details')
    }
  })

  it.each(bodyOperations)('%s names each field that is wrong', async (id) => {
    const valid = validBody(id) as Record<string, unknown>
    const nested = id === 'createPatchEvent'
    const fields = Object.entries(nested ? validEvent : valid).filter(
      ([name, value]) => value !== null && name !== 'message',
    )
    for (const [name] of fields) {
      const wrong = nested ? { event: { ...validEvent, [name]: [] } } : { ...valid, [name]: [] }
      const answer = await call(id, { token: owner.apiKey, body: wrong })
      expect({ name, status: answer.status }).toEqual({ name, status: 400 })
      expect((answer.body as { details: string }).details).toContain(`${name}:`)
    }
  })

  it.each(bodyOperations)('%s refuses a body over 1 MiB', async (id) => {
    const rawBody = JSON.stringify({ padding: 'x'.repeat(1024 ** 2) })
    expect(await call(id, { token: owner.apiKey, rawBody })).toMatchObject({
      status: 413,
      body: { code: 'payload_too_large' },
    })
  })

  it.each(queryOperations)('%s refuses a query that is not what it takes', async (id) => {
    const query = '?sideloadable=maybe&platform=beos&per_page=many&granularity=eon&window_days=many'
    expect(await call(id, { token: owner.apiKey, query })).toMatchObject({
      status: 400,
      body: { code: 'invalid_request' },
    })
  })

  it.each(idOperations)('%s answers 404 for an id that is none', async (id) => {
    for (const value of ['x', '1e3', '-1', '1.5', '99999999999999999999', '0x1', '%00']) {
      const params = Object.fromEntries(
        listPathParameters(routes[id].path)
          .filter((name) => !isTextParameter(name))
          .map((name) => [name, value]),
      )
      const answer = await call(id, { token: owner.apiKey, body: validBody(id), params })
      expect({ value, ...answer }).toMatchObject({ value, status: 404, body: { code: 'not_found' } })
    }
  })
})

describe('a body that is refused', () => {
  it.each([
    ['too large', '/api/v1/apps', 413],
    ['without a credential', '/api/v1/users', 401],
    ['for no route', '/nothing', 404],
    ['too large for the device door', '/api/v1/patches/check', 413],
  ])(
    '%s is answered before the connection closes, to a client that sends before it listens',
    async (name, path, status) => {
      const headers: Record<string, string> = name === 'too large' ? { authorization: `Bearer ${owner.apiKey}` } : {}
      const response = await fetch(service.baseUrl + path, { method: 'POST', headers, body: new Uint8Array(8_000_000) })
      expect(response.status).toBe(status)
      expect(await response.json()).toMatchObject({ code: expect.any(String) })
    },
  )
})

describe('a path that is no route', () => {
  it.each(['/', '/api/v1', '/api/v1/nothing', '/api/v2/apps'])('%s is a 404 with an ErrorResponse', async (path) => {
    const response = await fetch(service.baseUrl + path)
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({ code: 'not_found' })
  })
})
