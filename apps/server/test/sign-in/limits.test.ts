import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readNetwork } from '../../src/sign-in/limits.ts'
import { type Browser, createBrowser } from '../support/browser.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { createMember, type Member, password } from './accounts.ts'

let service: TestService

beforeAll(async () => {
  service = await createTestService({ config: { trustedProxies: ['127.0.0.1'] } })
})
afterAll(() => service.stop())

let addresses = 0

/** An address that nobody had before, as a trusted proxy tells it. */
function nextAddress(): string {
  addresses += 1
  return `198.51.${Math.floor(addresses / 250)}.${1 + (addresses % 250)}`
}

async function tryPassword(input: { browser?: Browser; email: string; password: string; address: string }) {
  const browser = input.browser ?? createBrowser(service.baseUrl)
  const fields = { email: input.email, password: input.password }
  return await browser.submit('/sign-in', '/sign-in', fields, { 'x-forwarded-for': input.address })
}

async function failTimes(count: number, input: { email: string; address: string }): Promise<number[]> {
  const browser = createBrowser(service.baseUrl)
  const statuses: number[] = []
  for (let attempt = 0; attempt < count; attempt += 1) {
    statuses.push((await tryPassword({ ...input, browser, password: 'not the password' })).status)
  }
  return statuses
}

/** Ends the waiting times of counters, as the passing of time does. */
async function expire(prefix: string): Promise<void> {
  await service.deps.db
    .updateTable('sign_in_limits')
    .set({ expire: Date.now() - 1 })
    .where('key', 'like', `${prefix}:%`)
    .execute()
}

async function removeCounters(): Promise<void> {
  await service.deps.db.deleteFrom('sign_in_limits').execute()
}

describe('wrong passwords', () => {
  it('are 10 in 15 minutes from one address at one account, then even the right one has to wait', async () => {
    const member = await createMember(service)
    const address = nextAddress()
    expect(await failTimes(11, { email: member.email, address })).toEqual([...Array(10).fill(400), 429])
    const answer = await tryPassword({ email: member.email, password, address })
    expect(answer.status).toBe(429)
    const wait = Number(answer.headers.get('retry-after'))
    expect(wait).toBeGreaterThan(800)
    expect(wait).toBeLessThanOrEqual(900)
    expect(answer.error).toBe('There were too many tries. Wait 15 minutes, then try again.')
    await expire('pair')
    expect((await tryPassword({ email: member.email, password, address })).status).toBe(303)
  })

  it('do not lock out the owner, who comes from another address', async () => {
    const member = await createMember(service)
    await failTimes(12, { email: member.email, address: nextAddress() })
    expect((await tryPassword({ email: member.email, password, address: nextAddress() })).status).toBe(303)
  })

  it('count the same whether the account exists, with the same answers', async () => {
    const member = await createMember(service)
    const known: unknown[] = []
    const unknown: unknown[] = []
    for (const [email, answers] of [
      [member.email, known],
      ['nobody-here@example.com', unknown],
    ] as const) {
      const address = nextAddress()
      const browser = createBrowser(service.baseUrl)
      for (let attempt = 0; attempt < 12; attempt += 1) {
        const answer = await tryPassword({ browser, email, password: 'not the password', address })
        answers.push([answer.status, normalize(answer.html, email)])
      }
    }
    expect(unknown).toEqual(known)
  })

  it('tried at the same time are counted too', async () => {
    const member = await createMember(service)
    const address = nextAddress()
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => tryPassword({ email: member.email, password: 'not the password', address })),
    )
    expect(answers.filter(({ status }) => status === 400)).toHaveLength(10)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(20)
  })

  it('make the wait grow: 30 in a day are the last', async () => {
    const member = await createMember(service)
    const address = nextAddress()
    for (let round = 0; round < 3; round += 1) {
      expect(await failTimes(10, { email: member.email, address })).toEqual(Array(10).fill(400))
      await expire('pair')
    }
    const answer = await tryPassword({ email: member.email, password, address })
    expect(answer.status).toBe(429)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(23 * 3600)
  })

  it('are forgotten after the right one', async () => {
    const member = await createMember(service)
    const address = nextAddress()
    for (let round = 0; round < 4; round += 1) {
      await failTimes(9, { email: member.email, address })
      expect((await tryPassword({ email: member.email, password, address })).status).toBe(303)
    }
  })

  it('are 100 in an hour from one address at all accounts; an own account between them does not help', async () => {
    await removeCounters()
    const address = nextAddress()
    const own = await createMember(service)
    for (let account = 0; account < 10; account += 1) {
      expect(await failTimes(10, { email: `target-${account}@example.com`, address })).toEqual(Array(10).fill(400))
      if (account < 9) expect((await tryPassword({ email: own.email, password, address })).status).toBe(303)
    }
    expect((await tryPassword({ email: own.email, password, address })).status).toBe(429)
  })

  it('from many addresses leave each of them three tries, so that the owner still gets in', async () => {
    await removeCounters()
    const member = await createMember(service)
    await attackFromManyAddresses(member)
    expect(await failTimes(4, { email: member.email, address: nextAddress() })).toEqual([400, 400, 400, 429])
    expect((await tryPassword({ email: member.email, password, address: nextAddress() })).status).toBe(303)
  })
})

async function attackFromManyAddresses(member: Member): Promise<void> {
  for (let round = 0; round < 5; round += 1) await failTimes(10, { email: member.email, address: nextAddress() })
}

describe('the counters', () => {
  it('name neither account nor address', async () => {
    await removeCounters()
    const member = await createMember(service)
    await failTimes(1, { email: member.email, address: '203.0.113.77' })
    const rows = await service.deps.db.selectFrom('sign_in_limits').selectAll().execute()
    expect(rows.map(({ key }) => key.split(':', 1)[0]).sort()).toEqual(['account', 'address', 'pair', 'pairOfDay'])
    expect(JSON.stringify(rows)).not.toMatch(/example\.com|203\.0/)
  })

  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:0db8:0001:0002::1', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
  ])('%s counts as %s: an IPv6 customer has a whole /64', (address, network) => {
    expect(readNetwork(address)).toBe(network)
  })
})

describe('an e-mail without account', () => {
  it('takes as long as a wrong password', async () => {
    await removeCounters()
    const member = await createMember(service)
    const browser = createBrowser(service.baseUrl)
    const times: { known: number[]; unknown: number[] } = { known: [], unknown: [] }
    for (let run = 0; run < 25; run += 1) {
      for (const kind of ['known', 'unknown'] as const) {
        const email = kind === 'known' ? member.email : 'nobody@example.com'
        const { html } = await browser.get('/sign-in')
        const token = /name="form_token" value="([^"]*)"/.exec(html)?.[1] ?? ''
        const startedAt = performance.now()
        const fields = { form_token: token, email, password: 'not the password' }
        const answer = await browser.post('/sign-in', fields, { 'x-forwarded-for': nextAddress() })
        times[kind].push(performance.now() - startedAt)
        expect(answer.status).toBe(400)
        await service.deps.db.deleteFrom('sign_in_limits').execute()
      }
    }
    const ratio = median(times.known) / median(times.unknown)
    expect(ratio).toBeGreaterThan(0.5)
    expect(ratio).toBeLessThan(2)
  })
})

function median(values: number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** A page without what differs between any two: the token, and the e-mail that was typed. */
function normalize(html: string, email: string): string {
  return html.replaceAll(email, 'EMAIL').replaceAll(/name="form_token" value="[^"]*"/g, '')
}
