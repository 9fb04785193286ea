import { randomUUID } from 'node:crypto'
import { exportSPKI, generateKeyPair, importJWK, SignJWT } from 'jose'
import pino from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { exchangeToken } from '../../src/trust-rules/exchange-token.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { type CiProvider, exchange, noSource, startCiProvider } from './ci-provider.ts'

let service: TestService
let ci: CiProvider
let owner: TestAccount
let organizationId: number
let now = new Date()
const lines: Record<string, unknown>[] = []

beforeAll(async () => {
  ci = await startCiProvider({ audience: () => service.baseUrl, now: () => now })
  service = await createTestService({
    clock: () => now,
    config: { ciIssuers: [ci.issuer, 'http://127.0.0.1:1'] },
    log: pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) }),
  })
})
afterAll(async () => {
  await service.stop()
  await ci.stop()
})
beforeEach(async () => {
  now = new Date()
  lines.length = 0
  owner = await service.createAccount()
  organizationId = owner.organizationId
})
// The rules of one test must not let in the jobs of the next.
afterEach(async () => {
  await service.deps.db.deleteFrom('service_accounts').execute()
})

type Rule = { issuer?: string; repository?: string; workflow?: string; environment?: string; ref_pattern?: string }

async function trust(rule: Rule = {}) {
  const { id: serviceAccountId } = await owner.api.createServiceAccount({
    params: { organizationId },
    body: { name: 'CI' },
  })
  const params = { organizationId, serviceAccountId }
  const { id: ruleId } = await owner.api.createTrustRule({
    params,
    body: { issuer: ci.issuer, repository: 'acme/app', workflow: 'release.yml', ...rule },
  })
  return { ...params, ruleId }
}

function seconds(offset: number): number {
  return Math.floor(now.getTime() / 1000) + offset
}

async function expectRefusal(token: string, description: RegExp, code = 'invalid_request') {
  const refusal = await exchange(service.deps, token).then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(refusal).toMatchObject({ code, description: expect.stringMatching(description) })
  const logged = lines.filter(({ msg }) => msg === 'a CI job was refused').at(-1)
  expect(logged).toMatchObject({ level: 40, reason: expect.stringMatching(description) })
  expect(JSON.stringify([refusal, lines])).not.toContain(token.split('.')[2] || token)
}

describe('a job that a rule trusts', () => {
  it('gets a token of 15 minutes that does what the role of the service account allows', async () => {
    const { serviceAccountId } = await trust()
    const answer = await exchange(service.deps, await ci.buildToken())
    expect(answer).toEqual({
      access_token: expect.any(String),
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: 900,
    })
    const api = service.client(answer.access_token)
    const { organizations } = await api.listOrganizations()
    expect(organizations).toMatchObject([{ organization: { id: organizationId }, role: 'developer' }])
    await expect(api.listServiceAccounts({ params: { organizationId } })).rejects.toMatchObject({ status: 403 })
    const claims = JSON.parse(Buffer.from(answer.access_token.split('.')[1] ?? '', 'base64url').toString())
    expect(claims).toMatchObject({ sub: String(serviceAccountId), kind: 'federated', aud: service.baseUrl })
    now = new Date(now.getTime() + 899_000)
    await api.listOrganizations()
    now = new Date(now.getTime() + 2_000)
    await expect(api.listOrganizations()).rejects.toMatchObject({ status: 401 })
  })

  it('leaves its claims behind', async () => {
    const { ruleId } = await trust({ environment: 'production' })
    await exchange(service.deps, await ci.buildToken({ environment: 'production' }))
    const row = await service.deps.db
      .selectFrom('federated_sessions')
      .selectAll()
      .where('trust_rule_id', '=', ruleId)
      .executeTakeFirstOrThrow()
    expect(row).toMatchObject({
      issuer: ci.issuer,
      repository: 'acme/app',
      workflow_ref: 'acme/app/.github/workflows/release.yml@refs/heads/main',
      run_id: '42',
      ref: 'refs/heads/main',
      environment: 'production',
      created_at: now,
    })
  })

  it('may be one of GitLab', async () => {
    await trust({ workflow: '.gitlab-ci.yml', ref_pattern: 'refs/heads/main' })
    const host = ci.issuer.replace('http://', '')
    const token = await ci.buildToken({
      repository: undefined,
      workflow_ref: undefined,
      run_id: undefined,
      project_path: 'acme/app',
      ci_config_ref_uri: `${host}/acme/app//.gitlab-ci.yml@refs/heads/main`,
      ref: 'main',
      ref_type: 'branch',
      pipeline_id: '9',
    })
    expect(await exchange(service.deps, token)).toMatchObject({ token_type: 'Bearer' })
  })

  it('takes 30 seconds between the clocks, either way', async () => {
    await trust()
    await exchange(service.deps, await ci.buildToken({ iat: seconds(-300), nbf: seconds(-300), exp: seconds(-29) }))
    await exchange(service.deps, await ci.buildToken({ iat: seconds(30), nbf: seconds(30), exp: seconds(300) }))
  })

  it('takes an audience in a list, alone', async () => {
    await trust()
    await exchange(service.deps, await ci.buildToken({ aud: [service.baseUrl] }))
  })

  it('signs in although the plan no longer includes trust rules', async () => {
    await trust()
    await service.deps.db.updateTable('users').set({ plan: 'free' }).where('id', '=', owner.userId).execute()
    await exchange(service.deps, await ci.buildToken())
  })
})

describe('a CI token', () => {
  beforeEach(async () => {
    await trust({ environment: 'production', ref_pattern: 'refs/heads/*' })
  })
  const good = { environment: 'production' }

  it('of the right job is taken (or the refusals below prove nothing)', async () => {
    await exchange(service.deps, await ci.buildToken(good))
  })

  it.each<[string, () => Record<string, unknown>, RegExp]>([
    ['for another audience', () => ({ aud: 'https://other.example.com' }), /audience must be http/],
    ['for another audience as well', () => ({ aud: [service.baseUrl, 'https://x.example'] }), /nothing else/],
    ['for no audience', () => ({ aud: undefined }), /has no aud/],
    ['that has expired', () => ({ iat: seconds(-300), exp: seconds(-31) }), /has expired/],
    ['that is not valid yet', () => ({ nbf: seconds(32) }), /not valid yet/],
    ['from the future', () => ({ iat: seconds(40) }), /issued in the future/],
    ['without an end', () => ({ exp: undefined }), /has no exp/],
    ['that lives for more than an hour', () => ({ exp: seconds(3602) }), /longer than 3600/],
    ['without an id', () => ({ jti: undefined }), /has no jti/],
    ['with an empty id', () => ({ jti: '' }), /jti/],
    [
      'of another repository',
      () => ({ repository: 'acme/web', workflow_ref: 'acme/web/.github/workflows/release.yml@refs/heads/main' }),
      /no trust rule .* repository acme\/web/,
    ],
    [
      'of a workflow elsewhere',
      () => ({ workflow_ref: 'evil/x/.github/workflows/release.yml@refs/heads/main' }),
      /own repository/,
    ],
    [
      'of another workflow',
      () => ({ workflow_ref: 'acme/app/.github/workflows/test.yml@refs/heads/main' }),
      /test\.yml/,
    ],
    ['of another environment', () => ({ environment: 'staging' }), /environment staging/],
    ['of no environment', () => ({ environment: undefined }), /no environment/],
    ['of another ref', () => ({ ref: 'refs/tags/v1' }), /ref refs\/tags\/v1/],
    ['without a repository', () => ({ repository: undefined }), /does not describe a job/],
    [
      'of an issuer that the operator has not allowed',
      () => ({ iss: 'https://evil.example.com' }),
      /trusts no such issuer/,
    ],
  ])('%s is refused', async (_name, claims, description) => {
    await expectRefusal(await ci.buildToken({ ...good, ...claims() }), description)
  })

  it('that is none is refused', async () => {
    for (const token of ['no-token-at-all', 'q9z8.q9z8.q9z8', `${Buffer.from('{}').toString('base64url')}.e30.`]) {
      await expectRefusal(token, /not a JWT that names its issuer/)
    }
  })

  it('that was altered is refused', async () => {
    const [header, payload, signature] = (await ci.buildToken({ ...good, repository: 'evil/x' })).split('.')
    const claims = JSON.parse(Buffer.from(payload ?? '', 'base64url').toString())
    const altered = Buffer.from(JSON.stringify({ ...claims, repository: 'acme/app' })).toString('base64url')
    await expectRefusal(`${header}.${altered}.${signature}`, /signature is wrong/)
  })

  it('signed with a key of somebody else is refused, also under the name of the real key', async () => {
    const payload = JSON.parse(Buffer.from((await ci.buildToken(good)).split('.')[1] ?? '', 'base64url').toString())
    const { privateKey } = await generateKeyPair('RS256')
    const sign = async (kid: string) =>
      await new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid }).sign(privateKey)
    await expectRefusal(await sign(ci.server.issuer.keys.get()?.kid ?? ''), /signature is wrong/)
    await expectRefusal(await sign('invented'), /does not publish the key/)
  })

  it('without a signature, or with the public key as a shared secret, is refused', async () => {
    const token = await ci.buildToken(good)
    const [, payload] = token.split('.')
    for (const alg of ['none', 'None', 'NONE']) {
      const header = Buffer.from(JSON.stringify({ alg, typ: 'JWT' })).toString('base64url')
      await expectRefusal(`${header}.${payload}.`, /must be signed with one of|malformed/)
    }
    const jwk = ci.server.issuer.keys.get()
    const { kty, n, e } = jwk as unknown as Record<string, string>
    const publicKey = await importJWK({ kty, n, e }, 'RS256', { extractable: true })
    const secret = new TextEncoder().encode(
      await exportSPKI(publicKey as Awaited<ReturnType<typeof generateKeyPair>>['publicKey']),
    )
    const forged = await new SignJWT(JSON.parse(Buffer.from(payload ?? '', 'base64url').toString()))
      .setProtectedHeader({ alg: 'HS256', kid: jwk?.kid ?? '' })
      .sign(secret)
    await expectRefusal(forged, /must be signed with one of/)
  })

  it.each(['RS512', 'EdDSA'])('signed with %s, which is not in the list, is refused', async (alg) => {
    const payload = JSON.parse(Buffer.from((await ci.buildToken(good)).split('.')[1] ?? '', 'base64url').toString())
    const { privateKey } = await generateKeyPair(alg)
    const kid = ci.server.issuer.keys.get()?.kid ?? ''
    await expectRefusal(
      await new SignJWT(payload).setProtectedHeader({ alg, kid }).sign(privateKey),
      /must be signed with one of/,
    )
  })

  it('works once', async () => {
    const token = await ci.buildToken(good)
    await exchange(service.deps, token)
    await expectRefusal(token, /was used already/)
  })

  it('works once, also when it is used several times at once', async () => {
    const token = await ci.buildToken(good)
    const attempts = await Promise.allSettled([1, 2, 3, 4].map(() => exchange(service.deps, token)))
    expect(attempts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  })

  it('with the id of a used one is refused, whatever else it says', async () => {
    const jti = randomUUID()
    await exchange(service.deps, await ci.buildToken({ ...good, jti }))
    await expectRefusal(await ci.buildToken({ ...good, jti, run_id: '43' }), /was used already/)
  })

  it('of a new key is taken once the keys were read again', async () => {
    await exchange(service.deps, await ci.buildToken(good))
    const { kid } = await ci.server.issuer.keys.generate('ES256')
    const token = await ci.buildToken(good, { kid })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 31_000 })
    try {
      await exchange(service.deps, token)
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('a token that was handed out', () => {
  it('works in the form that the public client takes from its environment', async () => {
    await trust()
    const { access_token: token } = await exchange(service.deps, await ci.buildToken())
    expect(await service.client(`sb_api_${token}`).listApps()).toEqual(await service.client(token).listApps())
    await expect(service.client(`sb_api_sb_api_${token}`).listApps()).rejects.toMatchObject({ status: 401 })
  })

  it('stops at once with its rule', async () => {
    const { organizationId, serviceAccountId, ruleId } = await trust()
    const api = service.client((await exchange(service.deps, await ci.buildToken())).access_token)
    await api.listApps()
    await owner.api.deleteTrustRule({ params: { organizationId, serviceAccountId, ruleId } })
    await expect(api.listApps()).rejects.toMatchObject({ status: 401 })
    await expectRefusal(await ci.buildToken(), /no trust rule/)
  })

  it('was made of a token that stays used when its rule is gone and another one matches', async () => {
    const { organizationId, serviceAccountId, ruleId } = await trust()
    const token = await ci.buildToken()
    await exchange(service.deps, token)
    await owner.api.deleteTrustRule({ params: { organizationId, serviceAccountId, ruleId } })
    await trust()
    await expectRefusal(token, /was used already/)
  })

  it('stops at once with its service account', async () => {
    const params = await trust()
    const api = service.client((await exchange(service.deps, await ci.buildToken())).access_token)
    await owner.api.deleteServiceAccount({ params })
    await expect(api.listApps()).rejects.toMatchObject({ status: 401 })
  })

  it('has the new role on the next request', async () => {
    const params = await trust()
    const api = service.client((await exchange(service.deps, await ci.buildToken())).access_token)
    await expect(api.listServiceAccounts({ params })).rejects.toMatchObject({ status: 403 })
    await owner.api.updateServiceAccount({ params, body: { role: 'admin' } })
    await api.listServiceAccounts({ params })
    await owner.api.updateServiceAccount({ params, body: { role: 'auditor' } })
    await expect(api.listApps()).rejects.toMatchObject({ status: 403 })
  })
})

describe('several service accounts that trust the same job', () => {
  it('are told apart by service_account_id', async () => {
    const first = await trust()
    const second = await trust()
    await expectRefusal(await ci.buildToken(), /service_account_id: several/)
    for (const { serviceAccountId } of [first, second]) {
      const { access_token } = await exchange(service.deps, await ci.buildToken(), { serviceAccountId })
      const verified = await service.deps.accessTokens.verify(access_token)
      expect(verified).toMatchObject({ claims: { sub: String(serviceAccountId) } })
    }
    await expect(exchange(service.deps, await ci.buildToken(), { serviceAccountId: 999_999 })).rejects.toMatchObject({
      code: 'invalid_request',
    })
  })

  it('do not use up the token of a job that did not say which', async () => {
    const { serviceAccountId } = await trust()
    await trust()
    const token = await ci.buildToken()
    await expectRefusal(token, /several/, 'invalid_request')
    await exchange(service.deps, token, { serviceAccountId })
  })

  it('lets a job in only where the organization is not being deleted', async () => {
    await trust()
    await service.deps.db
      .updateTable('organizations')
      .set({ deletion_started_at: now })
      .where('id', '=', organizationId)
      .execute()
    await expectRefusal(await ci.buildToken(), /no trust rule/)
  })
})

describe('POST /token', () => {
  const request = async (form: Record<string, string>) => {
    const response = await fetch(`${service.baseUrl}/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
        ...form,
      }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }

  it('exchanges the token of a job without any credential of a client', async () => {
    await trust()
    const { status, body } = await request({ subject_token: await ci.buildToken(), audience: service.baseUrl })
    expect({ status, body }).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 900 } })
    await service.client(String(body.access_token)).listApps()
  })

  it('refuses as OAuth clients read it, in characters that may be there', async () => {
    const { status, body } = await request({ subject_token: await ci.buildToken({ environment: 'a"b\\é' }) })
    expect({ status, body }).toEqual({
      status: 400,
      body: { error: 'invalid_request', error_description: expect.stringContaining('environment a?b??,') },
    })
  })
})

describe('the request', () => {
  const subjectTokenType = 'urn:ietf:params:oauth:token-type:jwt'

  it.each([
    ['another type of token', { subjectTokenType: 'urn:ietf:params:oauth:token-type:saml2' }, 'invalid_request'],
    ['another audience', { subjectTokenType, audience: 'https://other.example.com' }, 'invalid_target'],
    ['another resource', { subjectTokenType, resource: 'https://other.example.com' }, 'invalid_target'],
    ['a service account that is no id', { subjectTokenType, serviceAccountId: '1 or 1' }, 'invalid_request'],
  ])('with %s is refused', async (_name, input, code) => {
    await trust()
    const subjectToken = await ci.buildToken()
    await expect(exchangeToken(service.deps, { subjectToken, source: noSource, ...input })).rejects.toMatchObject({
      code,
    })
  })

  it('may name this server', async () => {
    await trust()
    const subjectToken = await ci.buildToken()
    await exchangeToken(service.deps, {
      subjectToken,
      source: noSource,
      subjectTokenType,
      audience: service.baseUrl,
      resource: `${service.baseUrl}/`,
    })
  })

  it('is told to come again when the issuer does not answer, and works when it does', async () => {
    const token = await ci.buildToken({ iss: 'http://127.0.0.1:1' })
    await expectRefusal(token, /cannot be read; try again/, 'temporarily_unavailable')
    const other = await startCiProvider({ audience: () => service.baseUrl, now: () => now })
    service.deps.config.ciIssuers.push(other.issuer)
    await trust({ issuer: other.issuer })
    const port = Number(new URL(other.issuer).port)
    const early = await other.buildToken()
    await other.stop()
    await expectRefusal(early, /cannot be read/, 'temporarily_unavailable')
    await other.server.start(port, '127.0.0.1')
    other.server.issuer.url = `http://127.0.0.1:${port}`
    await exchange(service.deps, early)
    await other.stop()
  })
})
