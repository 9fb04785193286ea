import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { exchangeCode, issueCode } from '../../src/command-line-sign-in/actions.ts'
import { findAccountByPassword, setPassword } from '../../src/passwords/actions.ts'
import { startSecondFactor } from '../../src/second-factor/actions.ts'
import { startBrowserSession } from '../../src/sessions/actions.ts'
import { waitForBlocked, whileHolding } from '../support/hold.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

const [first, second, third] = [
  'the first of the passwords',
  'the second of the passwords',
  'a third that a thief sets',
]
const origin = { userAgent: null, address: null }
const target = new URL('http://localhost:1/callback')

let service: TestService
let account: TestAccount
let sessionId: string

beforeAll(async () => {
  service = await createTestService()
})
afterAll(() => service.stop())
beforeEach(async () => {
  account = await service.createAccount()
  await setPassword(service.deps, { userId: account.userId, password: first })
  ;({ id: sessionId } = await startBrowserSession(service.deps.db, {
    userId: account.userId,
    issuer: service.baseUrl,
    isMfa: null,
    ...origin,
    now: new Date(),
  }))
})

const issue = () => issueCode(service.deps, { userId: account.userId, sessionId, issuer: 'i', isMfa: null, target })
const changePassword = () => setPassword(service.deps, { userId: account.userId, password: second })

/** Somebody who holds the account's password changes it while another request of the thief's is under way. */
describe('a change of password', () => {
  it('also ends the session of a code that is being exchanged at that moment', async () => {
    const { deps } = service
    const code = await issue()
    const pending: Promise<unknown>[] = []
    // Sessions cannot be inserted: the exchange has its code and waits.
    await whileHolding(deps.db, 'lock table sessions in share mode', async () => {
      pending.push(exchangeCode(deps, { code, redirectUri: undefined, ...origin }))
      await waitForBlocked(deps.db, 1)
      pending.push(changePassword())
      await waitForBlocked(deps.db, 2)
    })
    const [tokens] = (await Promise.all(pending)) as [{ access_token: string; refresh_token: string }]
    await expect(service.client(tokens.access_token).getCurrentUser()).rejects.toMatchObject({ status: 401 })
  })

  it.each([
    ['asks for a code', () => issue()],
    [
      'sets a password of its own',
      () => setPassword(service.deps, { userId: account.userId, password: third, exceptSessionId: sessionId }),
    ],
    ['begins a second factor', () => startSecondFactor(service.deps, { userId: account.userId, sessionId })],
  ])('stops what a session of before %s at that moment', async (_name, act) => {
    const { deps } = service
    const pending: Promise<unknown>[] = []
    await whileHolding(deps.db, `select from users where id = ${account.userId} for update`, async () => {
      pending.push(changePassword())
      await waitForBlocked(deps.db, 1)
      pending.push(act().catch((error: unknown) => error))
      await waitForBlocked(deps.db, 2)
    })
    const [, refusal] = await Promise.all(pending)
    expect(refusal).toMatchObject({ code: 'unauthenticated' })
    const found = await findAccountByPassword(deps, { email: account.email, password: second, address: '127.0.0.1' })
    expect(found?.userId).toBe(account.userId)
  })
})

describe('deleting an account', () => {
  it('and exchanging its code at that moment wait for each other in one order', async () => {
    const { deps } = service
    const code = await issue()
    const pending: Promise<unknown>[] = []
    await whileHolding(deps.db, `select from users where id = ${account.userId} for update`, async () => {
      pending.push(exchangeCode(deps, { code, redirectUri: undefined, ...origin }).catch(() => undefined))
      await waitForBlocked(deps.db, 1)
      pending.push(account.api.deleteCurrentUser())
      await waitForBlocked(deps.db, 2)
    })
    await Promise.all(pending)
    await expect(account.api.getCurrentUser()).rejects.toMatchObject({ status: 401 })
  })
})
