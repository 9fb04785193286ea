import fc from 'fast-check'
import { Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely'
import pino from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Database } from '../../src/db/tables.ts'
import { createDeviceRateLimiter } from '../../src/devices/device-rate-limit.ts'
import { createRateLimiter } from '../../src/http/rate-limit.ts'
import { chooseTellFrom, createSharedCounts, type SharedCounts } from '../../src/http/shared-counts.ts'

const stepMs = 20
/** Instances tell every 100 ms, and are heard within another 100. */
const unheardSteps = 200 / stepMs + 1
const log = pino({ level: 'silent' })

beforeEach(() => {
  vi.useFakeTimers({ now: 0 })
})
afterEach(() => {
  vi.useRealTimers()
})

type Kind = 'caller' | 'device'
/** `takes[step]`: which instance is asked, and how often. */
type Plan = { instances: number; limit: number; delaysMs: number[]; offsetMs: number; takes: [number, number][] }

/** Notifications of PostgreSQL that take as long as is wanted: those of one sender arrive in order. */
function createNotifications(delaysMs: number[]) {
  const listeners: SharedCounts[] = []
  let sent = 0
  const openSender = () => {
    let lastAtMs = 0
    const query = async (_text: string, [, payload]: [string, string]) => {
      const delayMs = delaysMs[sent++ % delaysMs.length] ?? 0
      lastAtMs = Math.max(lastAtMs, Date.now() + delayMs)
      setTimeout(() => listeners.forEach(({ hear }) => void hear(payload)), lastAtMs - Date.now())
      return { command: 'SELECT', rowCount: 1, rows: [] }
    }
    const client = { query, release: () => undefined } as unknown as PostgresPoolClient
    const pool = { connect: async () => client, end: async () => undefined, options: {} }
    return new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
  }
  return { openSender, listen: (counts: SharedCounts) => void listeners.push(counts) }
}

function createLimiter(kind: Kind, limit: number, counts: SharedCounts | undefined): () => boolean {
  if (kind === 'device') {
    const limiter = createDeviceRateLimiter(limit, counts)
    return () => limiter.take('app', 'device') === undefined
  }
  const limiter = createRateLimiter(limit, counts && { counts, name: 'caller' })
  return () => limiter.take('key') === undefined
}

async function run(kind: Kind, plan: Plan, isShared = true) {
  vi.clearAllTimers()
  vi.setSystemTime(0)
  const { openSender, listen } = createNotifications(plan.delaysMs)
  const limiters: (() => boolean)[] = []
  for (let instance = 0; instance < plan.instances; instance += 1) {
    const counts = isShared ? createSharedCounts({ db: openSender(), seed: 1, log }) : undefined
    if (counts !== undefined) listen(counts)
    limiters.push(createLimiter(kind, plan.limit, counts))
    await vi.advanceTimersByTimeAsync(plan.offsetMs)
  }
  const allowed = limiters.map(() => 0)
  for (const [instance, count] of plan.takes) {
    const index = instance % plan.instances
    for (let take = 0; take < count; take += 1) if (limiters[index]?.()) allowed[index] = (allowed[index] ?? 0) + 1
    await vi.advanceTimersByTimeAsync(stepMs)
  }
  return { allowed: sum(allowed), asked: sum(plan.takes.map(([, count]) => count)) }
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}

/** The most that is asked while one telling is on its way. */
function findBusiest(takes: Plan['takes']): number {
  return Math.max(...takes.map((_, from) => sum(takes.slice(from, from + unheardSteps).map(([, count]) => count))))
}

function choosePlans(maxTakes: (limit: number) => number, steps: { minLength: number; maxLength: number }) {
  return fc.integer({ min: 200, max: 2000 }).chain((limit) =>
    fc.record({
      limit: fc.constant(limit),
      instances: fc.integer({ min: 2, max: 4 }),
      delaysMs: fc.array(fc.integer({ min: 0, max: 100 }), { minLength: 1, maxLength: 20 }),
      offsetMs: fc.integer({ min: 0, max: 99 }),
      takes: fc.array(fc.tuple(fc.nat(3), fc.nat(maxTakes(limit))), { ...steps, size: 'max' }),
    }),
  )
}

describe.each(['caller', 'device'] as const)('the limit of a %s over several instances', (kind) => {
  it('refuses nobody who is below it, and lets through no more than what the others cannot have heard of', async () => {
    const plans = choosePlans((limit) => Math.ceil(limit / 5), { minLength: 1, maxLength: 60 })
    const property = fc.asyncProperty(plans, async (plan) => {
      const { allowed, asked } = await run(kind, plan)
      const quiet = (plan.instances - 1) * (chooseTellFrom(plan.limit) - 1)
      expect(allowed).toBeGreaterThanOrEqual(Math.min(asked, plan.limit))
      expect(allowed).toBeLessThanOrEqual(plan.limit + quiet + findBusiest(plan.takes))
    })
    await fc.assert(property, { numRuns: 40, endOnFailure: true })
  }, 30_000)

  it('is kept within a tenth when it is used up in several seconds', async () => {
    // On average 0.15% of the limit in a step: 900 steps, 18 s, ask for more than all of it.
    const plans = choosePlans((limit) => Math.max(1, Math.floor(limit * 0.003)), { minLength: 900, maxLength: 1500 })
    const property = fc.asyncProperty(plans, async (plan) => {
      const { allowed, asked } = await run(kind, plan)
      expect(allowed).toBeGreaterThanOrEqual(Math.min(asked, plan.limit))
      expect(allowed).toBeLessThanOrEqual(plan.limit * 1.1)
    })
    await fc.assert(property, { numRuns: 10, endOnFailure: true })
  }, 30_000)

  it('is kept by each instance alone while they hear nothing of each other', async () => {
    const plans = choosePlans((limit) => limit, { minLength: 1, maxLength: 30 })
    const property = fc.asyncProperty(plans, async (plan) => {
      const { allowed, asked } = await run(kind, plan, false)
      expect(allowed).toBeGreaterThanOrEqual(Math.min(asked, plan.limit))
      expect(allowed).toBeLessThanOrEqual(plan.limit * plan.instances)
    })
    await fc.assert(property, { numRuns: 30, endOnFailure: true })
  }, 30_000)
})
