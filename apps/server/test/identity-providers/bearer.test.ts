import { createPublicKey, randomUUID } from 'node:crypto'
import { type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { createApiKey } from '../../src/api-keys/actions.ts'
import { hashPassword } from '../../src/passwords/hash-password.ts'
import { createAccount } from '../../src/users/actions.ts'
import type { OpenIdProvider, ProviderUser } from '../support/openid-provider.ts'
import type { TestService } from '../support/test-service.ts'
import { type SignInSetup, setUpSignIn } from './setup.ts'

let setup: SignInSetup
let service: TestService
let idp: OpenIdProvider

beforeAll(async () => {
  setup = await setUpSignIn()
  ;({ service, idp } = setup)
})
afterAll(() => setup.stop())
afterEach(() => {
  setup.setClockAhead(0)
  vi.useRealTimers()
})

function createUser(claims: Record<string, unknown> = {}): ProviderUser {
  const sub = randomUUID()
  return { sub, claims: { email: `${sub}@example.com`, email_verified: true, name: 'Ada', ...claims } }
}

const call = async (token: string, method = 'GET', path = '/users/me') => {
  const response = await fetch(`${service.baseUrl}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(method === 'POST' ? { 'content-type': 'application/json' } : {}) },
    ...(method === 'POST' ? { body: '{}' } : {}),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}
const statusOf = async (token: string) => (await call(token)).status

/** The claims of a good token, for those that differ from it in one thing. */
function claimsOf(user: ProviderUser, changes: JWTPayload = {}): JWTPayload {
  const now = Math.floor(Date.now() / 1000)
  const { sub, claims } = user
  return { iss: idp.issuer, aud: idp.client.id, sub, iat: now, exp: now + 600, ...claims, ...changes }
}

/** Refused, and the log says why; what it says holds no token. */
async function expectRefused(token: string, reason: RegExp) {
  setup.logged.length = 0
  expect(await statusOf(token)).toBe(401)
  expect(setup.logged).toEqual([
    expect.objectContaining({
      msg: 'refused a credential',
      tried: 'an ID token',
      reason: expect.stringMatching(reason),
      address: '127.0.0.1',
    }),
  ])
  expect(JSON.stringify(setup.logged)).not.toContain(token.split('.')[1])
}

describe('the ID token of an identity provider as a bearer token', () => {
  it('is a 404 on GET /users/me, makes the account with POST /users, and is that account from then on', async () => {
    const user = createUser()
    const token = await idp.issueIdToken(user)
    expect(await call(token)).toMatchObject({ status: 404, body: { code: 'not_found' } })
    const created = await call(token, 'POST', '/users')
    expect(created).toMatchObject({ status: 200, body: { email: user.claims.email, jwt_issuer: idp.issuer } })
    expect(await call(token, 'POST', '/users')).toEqual(created)
    expect(await call(token)).toEqual(created)
  })

  it('makes one account when POST /users comes twice at once', async () => {
    const token = await idp.issueIdToken(createUser())
    const answers = await Promise.all([1, 2, 3, 4].map(() => call(token, 'POST', '/users')))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1)
  })

  it('is the account with its verified e-mail, whatever the case, and stays it when the e-mail changes', async () => {
    const account = await service.createAccount()
    const user = createUser({ email: account.email.toUpperCase() })
    expect(await call(await idp.issueIdToken(user))).toMatchObject({ status: 200, body: { id: account.userId } })
    const renamed = { ...user, claims: { email: 'renamed@example.com', email_verified: true } }
    expect(await call(await idp.issueIdToken(renamed))).toMatchObject({ status: 200, body: { id: account.userId } })
    const unverified = { ...user, claims: { email: account.email, email_verified: false } }
    expect(await call(await idp.issueIdToken(unverified))).toMatchObject({ status: 200, body: { id: account.userId } })
  })

  it.each([[false], [undefined], ['false'], [1]])('is nobody when email_verified is %s', async (isVerified) => {
    const account = await service.createAccount()
    const user = createUser({ email: account.email, email_verified: isVerified, xms_edov: true })
    await expectRefused(await idp.issueIdToken(user), /not verified/)
  })

  it('is nobody when its e-mail lower-cases to that of somebody else', async () => {
    await service.createAccount({ email: 'kim@example.com' })
    // U+212A, the Kelvin sign, is a k in lower case.
    const user = createUser({ email: '\u212Aim@example.com' })
    await expectRefused(await idp.sign(claimsOf(user)), /not verified/)
  })

  it('takes the account from who prepared it without having shown that its e-mail is theirs', async () => {
    const email = 'victim@example.com'
    const { deps } = service
    const prepared = await createAccount(deps.db, {
      email,
      displayName: null,
      jwtIssuer: service.baseUrl,
      passwordHash: await hashPassword('a password of somebody else'),
      isEmailVerified: false,
    })
    const holder = { userId: Number(prepared?.user.id) }
    const { key } = await createApiKey(deps.db, { holder, name: 'mine', permission: 'full', expiresAt: null })
    expect(await statusOf(key)).toBe(200)
    const token = await idp.issueIdToken(createUser({ email }))
    expect(await call(token)).toMatchObject({ status: 200, body: { id: holder.userId } })
    expect(await statusOf(key)).toBe(401)
    const row = await deps.db.selectFrom('users').selectAll().where('id', '=', holder.userId).executeTakeFirstOrThrow()
    expect(row).toMatchObject({ password_hash: null, email_verified_at: expect.any(Date) })
  })

  it('refuses the token of another client of the same provider', async () => {
    await expectRefused(await idp.issueIdToken(createUser(), idp.otherClient), /another audience/)
  })

  it('takes several audiences only when it was issued to us', async () => {
    const aud = [idp.client.id, 'another-service']
    expect(await statusOf(await idp.sign(claimsOf(createUser(), { aud, azp: idp.client.id })))).toBe(404)
    await expectRefused(await idp.sign(claimsOf(createUser(), { aud })), /which of its audiences/)
    await expectRefused(await idp.sign(claimsOf(createUser(), { aud, azp: 'another-service' })), /another client/)
    await expectRefused(await idp.sign(claimsOf(createUser(), { azp: 'another-service' })), /another client/)
  })

  it('refuses one of an issuer that is not configured, and asks nobody for its keys', async () => {
    const { length } = idp.requests
    await expectRefused(await idp.sign(claimsOf(createUser(), { iss: `${idp.issuer}/other` })), /not configured/)
    await expectRefused(await idp.sign(claimsOf(createUser(), { iss: undefined })), /not configured/)
    expect(idp.requests).toHaveLength(length)
  })

  it('refuses one that has ended, but for 30 seconds by which clocks may differ', async () => {
    const token = await idp.issueIdToken(createUser())
    setup.setClockAhead(3600 + 25)
    expect(await statusOf(token)).toBe(404)
    setup.setClockAhead(3600 + 35)
    await expectRefused(token, /"exp"/)
  })

  it('refuses one from the future, but for 30 seconds by which clocks may differ', async () => {
    const token = await idp.issueIdToken(createUser())
    setup.setClockAhead(-25)
    expect(await statusOf(token)).toBe(404)
    setup.setClockAhead(-35)
    await expectRefused(token, /in the future/)
  })

  it('refuses one that is not valid yet, but for 30 seconds by which clocks may differ', async () => {
    const now = Math.floor(Date.now() / 1000)
    expect(await statusOf(await idp.sign(claimsOf(createUser(), { nbf: now + 25 })))).toBe(404)
    await expectRefused(await idp.sign(claimsOf(createUser(), { nbf: now + 45 })), /"nbf"/)
  })

  it.each(['exp', 'iat', 'sub', 'aud'])('refuses one without %s', async (claim) => {
    await expectRefused(await idp.sign(claimsOf(createUser(), { [claim]: undefined })), /exp|issued|subject|audience/)
  })

  it('refuses one without a signature', async () => {
    await expectRefused(new UnsecuredJWT(claimsOf(createUser())).encode(), /alg/i)
    const good = await idp.issueIdToken(createUser())
    await expectRefused(good.slice(0, good.lastIndexOf('.') + 1), /signature/)
  })

  it('refuses one signed with what is no secret between the two: our client secret, or the public key', async () => {
    const publicKey = createPublicKey({ key: idp.keys[0] as never, format: 'jwk' })
    const spki = publicKey.export({ format: 'pem', type: 'spki' })
    for (const secret of [idp.client.secret, spki]) {
      const token = await new SignJWT(claimsOf(createUser()))
        .setProtectedHeader({ alg: 'HS256', kid: String(idp.keys[0]?.kid) })
        .sign(Buffer.from(String(secret)))
      await expectRefused(token, /alg/i)
    }
  })

  it('refuses one that another key signed, under its own kid and under that of the provider', async () => {
    const { privateKey } = await crypto.subtle.generateKey(
      { name: 'RSASSA-PKCS1-v1_5', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
      true,
      ['sign', 'verify'],
    )
    const signWith = (kid: string) =>
      new SignJWT(claimsOf(createUser())).setProtectedHeader({ alg: 'RS256', kid }).sign(privateKey)
    await expectRefused(await signWith('invented'), /no applicable key/)
    await expectRefused(await signWith(String(idp.keys[0]?.kid)), /signature verification failed/)
  })

  it('refuses what the provider signs for other ends', async () => {
    await expectRefused(await idp.sign(claimsOf(createUser()), { typ: 'at+jwt' }), /by its type/)
    await expectRefused(await idp.sign(claimsOf(createUser()), { typ: 'logout+jwt' }), /by its type/)
  })

  it('refuses one of the provider that names this server as its issuer', async () => {
    const { baseUrl } = service
    expect(await statusOf(await idp.sign(claimsOf(createUser(), { iss: baseUrl, aud: baseUrl, sid: '1' })))).toBe(401)
  })

  it('reads the keys once for any number of tokens with invented keys', async () => {
    await statusOf(await idp.issueIdToken(createUser()))
    const { length } = idp.requests
    for (let index = 0; index < 5; index += 1) {
      expect(await statusOf(await idp.sign(claimsOf(createUser()), { kid: `invented-${index}` }))).toBe(401)
    }
    expect(idp.requests.slice(length)).toEqual([])
  })
})

describe('two providers with one issuer', () => {
  it('are told apart by the audience', async () => {
    const twice = await setUpSignIn({ isTwice: true })
    const ask = async (client: { id: string; secret: string }) => {
      const token = await twice.idp.issueIdToken(createUser(), client)
      const headers = { authorization: `Bearer ${token}` }
      return (await fetch(`${twice.service.baseUrl}/api/v1/users/me`, { headers })).status
    }
    expect([await ask(twice.idp.client), await ask(twice.idp.otherClient)]).toEqual([404, 404])
    await twice.stop()
  })
})
