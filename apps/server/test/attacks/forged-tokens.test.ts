import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { exportJWK, importJWK, SignJWT, UnsecuredJWT } from 'jose'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startClientSession } from '../../src/sessions/actions.ts'
import { toPublicJwk } from '../../src/sessions/signing-keys.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

let service: TestService
let victim: TestAccount
let attacker: TestAccount
let sid: string
let kid: string
const logged: Record<string, unknown>[] = []

beforeAll(async () => {
  const log = pino({ level: 'warn' }, { write: (line: string) => void logged.push(JSON.parse(line)) })
  service = await createTestService({ log })
  victim = await service.createAccount()
  attacker = await service.createAccount()
  sid = await startSession(victim)
  kid = (await service.deps.signingKeys.current()).kid
})
afterAll(() => service.stop())
beforeEach(() => {
  logged.length = 0
})

async function startSession(account: TestAccount): Promise<string> {
  const session = await startClientSession(service.deps.db, {
    userId: account.userId,
    issuer: service.baseUrl,
    isMfa: null,
    userAgent: null,
    address: null,
    client: 'command_line',
    now: new Date(),
    lifetimeMs: 3600_000,
  })
  return session.id
}

/** All that a good token says. */
const claims = () => ({
  sub: String(victim.userId),
  sid,
  email: victim.email,
  iss: service.baseUrl,
  aud: service.baseUrl,
  iat: Math.floor(Date.now() / 1000),
  exp: Math.floor(Date.now() / 1000) + 900,
})

async function signWithRealKey(
  payload: Record<string, unknown>,
  header: Record<string, unknown> = {},
): Promise<string> {
  const { privateJwk } = await service.deps.signingKeys.current()
  const key = await importJWK(privateJwk, 'RS256')
  return await new SignJWT(payload).setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid, ...header }).sign(key)
}

const foreign = generateKeyPairSync('rsa', { modulusLength: 2048 })
const whoAmI = (token: string) => service.client(token).getCurrentUser()

async function expectRefusal(token: string): Promise<void> {
  await expect(whoAmI(token)).rejects.toMatchObject({ status: 401, code: 'unauthenticated' })
  const lines = logged.filter(({ msg }) => msg === 'refused a credential')
  expect(lines).toMatchObject([{ tried: expect.stringMatching(/^an /), address: '127.0.0.1' }])
  expect(JSON.stringify(logged)).not.toContain(token.split('.')[2] || token.split('.')[1])
}

describe('a token with all the right claims', () => {
  it('is taken when our key signed it, so that the refusals below are for their own reasons', async () => {
    expect(await whoAmI(await signWithRealKey(claims()))).toMatchObject({ id: victim.userId })
  })

  it('is refused unsigned (alg none)', async () => {
    await expectRefusal(new UnsecuredJWT(claims()).encode())
    logged.length = 0
    const [, payload] = (await signWithRealKey(claims())).split('.')
    const header = Buffer.from(JSON.stringify({ alg: 'None', typ: 'JWT', kid })).toString('base64url')
    await expectRefusal(`${header}.${payload}.`)
  })

  it('is refused when signed with a published key as an HS256 secret', async () => {
    const [key] = await service.deps.signingKeys.list()
    if (key === undefined) throw new Error('no key')
    const jwk = toPublicJwk(key)
    const pem = createPublicKey({ key: jwk as never, format: 'jwk' })
      .export({ type: 'spki', format: 'pem' })
      .toString()
    for (const secret of [pem, pem.trim(), String(jwk.n), JSON.stringify(jwk)]) {
      logged.length = 0
      const signer = new SignJWT(claims()).setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid })
      await expectRefusal(await signer.sign(Buffer.from(secret)))
    }
  })

  it.each([
    ['under our kid', () => ({ kid })],
    ['under a kid of its own', () => ({ kid: 'foreign' })],
    ['without a kid', () => ({})],
    ['with its key in the header', async () => ({ kid, jwk: await exportJWK(foreign.publicKey) })],
    ['with a link to its key in the header', () => ({ kid, jku: 'https://evil.example/jwks.json' })],
  ])('is refused when another key signed it, %s', async (_name, header) => {
    const signer = new SignJWT(claims()).setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(await header()) } as never)
    await expectRefusal(await signer.sign(foreign.privateKey))
  })

  it('is refused when a byte of it was changed', async () => {
    const [header, , signature] = (await signWithRealKey(claims())).split('.')
    const altered = Buffer.from(JSON.stringify({ ...claims(), sub: String(attacker.userId) })).toString('base64url')
    await expectRefusal(`${header}.${altered}.${signature}`)
  })
})

describe('a token that our key signed', () => {
  it.each([
    ['has ended', () => ({ ...claims(), exp: Math.floor(Date.now() / 1000) - 6 })],
    ['never ends', () => ({ ...claims(), exp: undefined })],
    ['is for another service', () => ({ ...claims(), aud: 'https://other.example' })],
    ['was issued by another', () => ({ ...claims(), iss: 'https://other.example' })],
    ['names no session', () => ({ ...claims(), sid: undefined })],
    ['names a session that is not there', () => ({ ...claims(), sid: 'no-such-session' })],
    ['names the session of another person', () => ({ ...claims(), sub: String(attacker.userId) })],
    ['passes a session off as that of a CI job', () => ({ ...claims(), kind: 'federated' })],
  ])('is refused when it %s', async (_name, payload) => {
    await expectRefusal(await signWithRealKey(payload()))
  })
})

describe('an API key', () => {
  it('cannot be guessed from the part that finds it', async () => {
    const known = victim.apiKey.slice(0, 'sb_api_'.length + 8)
    for (const guess of [known, `${known}${'A'.repeat(35)}`, `${victim.apiKey}A`, victim.apiKey.slice(0, -1)]) {
      logged.length = 0
      await expectRefusal(guess)
      expect(JSON.stringify(logged)).not.toContain(known)
    }
  })
})
