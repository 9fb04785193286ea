import { createHash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import type { GuardedPool } from '../db/guarded-pool.ts'
import { AppError } from '../errors.ts'

const minute = 60
const hour = 60 * minute
const day = 24 * hour

/**
 * Nobody is locked out of an account by others: only one address is ever refused at one account, and an account that is
 * attacked from many addresses leaves each of them fewer tries. Every number counts failures.
 */
const limits = {
  /** One address at one account. The second limit makes the wait grow: after three quarters of an hour it is a day. */
  pair: { points: 10, duration: 15 * minute },
  pairOfDay: { points: 30, duration: day },
  /** One address at any accounts. */
  address: { points: 100, duration: hour },
  /** One account from any addresses: from then on each has `pairUnderAttack` instead of `pair`. */
  account: { points: 50, duration: day },
  pairUnderAttack: { points: 3, duration: day },
  /** Codes of the second factor. Who is asked for one has the password. 50 a day find the right one in 18 years on average. */
  pendingCode: { points: 5, duration: 5 * minute },
  codes: { points: 10, duration: 15 * minute },
  codesOfDay: { points: 50, duration: day },
  /** Mails to one account, and mails that one address asks for. */
  mail: { points: 3, duration: hour },
  mailByAddress: { points: 20, duration: hour },
  /** Invitations to one mailbox from any organization, and from one organization to any mailboxes. */
  invitation: { points: 5, duration: day },
  invitationOfOrganization: { points: 200, duration: day },
}

type LimitName = keyof typeof limits

export type SignInLimits = {
  /**
   * Counts a password before it is looked at, so that tries at the same time count too. Throws when there were too many,
   * whether or not the account exists. Returns what takes the try back after the right password.
   */
  takePassword: (input: { email: string; address: string }) => Promise<() => Promise<void>>
  /** The same for a code of the second factor. `pendingId`: of the sign-in that waits for it. */
  takeCode: (input: { userId: number; pendingId?: string }) => Promise<() => Promise<void>>
  /** Counts a mail that somebody asks for. */
  takeMail: (input: { email: string; address: string }) => Promise<void>
  /** Counts a mail that invites. Apart from the others: nobody can use up somebody's mails for a lost password. */
  takeInvitation: (input: { email: string; organizationId: number }) => Promise<void>
}

type Limiters = Record<LimitName, RateLimiterPostgres>

function createLimiters(pool: Pick<GuardedPool, 'query'>): Limiters {
  const names = Object.keys(limits) as LimitName[]
  const entries = names.map((name, index) => [
    name,
    new RateLimiterPostgres({
      ...limits[name],
      storeClient: pool,
      storeType: 'pool',
      tableName: 'sign_in_limits',
      tableCreated: true,
      keyPrefix: name,
      // One of them removes the expired rows of all.
      clearExpiredByTimeout: index === 0,
    }),
  ])
  return Object.fromEntries(entries) as Limiters
}

async function takeFrom(limiters: Limiters, name: LimitName, key: string): Promise<void> {
  try {
    await limiters[name].consume(key)
  } catch (refusal) {
    if (refusal instanceof RateLimiterRes) throw refuse(refusal.msBeforeNext)
    throw refusal
  }
}

/** Counters in the database, shared by all instances and kept over a restart. Keys are hashes: the table names nobody. */
export function createSignInLimits(options: { pool: Pick<GuardedPool, 'query'> }): SignInLimits {
  const limiters = createLimiters(options.pool)
  const take = (name: LimitName, key: string) => takeFrom(limiters, name, key)
  return {
    async takePassword({ email, address }) {
      const account = hashKey(email.toLowerCase())
      const network = hashKey(readNetwork(address))
      const pair = hashKey(`${account} ${network}`)
      await take('address', network)
      await take('pairOfDay', pair)
      await take('pair', pair)
      const attempts = await limiters.account.penalty(account)
      const isUnderAttack = attempts.consumedPoints > limits.account.points
      if (isUnderAttack) await take('pairUnderAttack', pair)
      return async () => {
        await limiters.pair.delete(pair)
        await limiters.pairOfDay.delete(pair)
        await limiters.pairUnderAttack.delete(pair)
        await limiters.address.reward(network)
        await limiters.account.reward(account)
      }
    },
    async takeCode({ userId, pendingId }) {
      const account = hashKey(String(userId))
      if (pendingId !== undefined) await take('pendingCode', hashKey(pendingId))
      await take('codes', account)
      await take('codesOfDay', account)
      return async () => {
        await limiters.codes.reward(account)
        await limiters.codesOfDay.reward(account)
      }
    },
    async takeMail({ email, address }) {
      await take('mailByAddress', hashKey(readNetwork(address)))
      await take('mail', hashKey(email.toLowerCase()))
    },
    async takeInvitation({ email, organizationId }) {
      await take('invitationOfOrganization', hashKey(String(organizationId)))
      await take('invitation', hashKey(email.toLowerCase()))
    },
  }
}

/** What one customer of a network has: an IPv4 address, or the first 64 bits of an IPv6 one (RFC 6177). */
export function readNetwork(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (!isIPv6(address)) return address
  const [head = '', tail] = (address.split('%', 1)[0] ?? '').split('::')
  const groups = head === '' ? [] : head.split(':')
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === '' ? 0 : tail.split(':').length)
  const all = [...groups, ...Array<string>(Math.max(0, missing)).fill('0'), ...(tail?.split(':') ?? [])]
  return all
    .slice(0, 4)
    .map((group) => Number.parseInt(group === '' ? '0' : group, 16).toString(16))
    .join(':')
}

function refuse(msBeforeNext: number): AppError {
  const retryAfterSeconds = Math.max(1, Math.ceil(msBeforeNext / 1000))
  const minutes = Math.ceil(retryAfterSeconds / minute)
  const wait = minutes === 1 ? 'a minute' : minutes > 90 ? `${Math.ceil(minutes / 60)} hours` : `${minutes} minutes`
  return new AppError('rate_limited', `There were too many tries. Wait ${wait}, then try again.`, { retryAfterSeconds })
}

function hashKey(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
