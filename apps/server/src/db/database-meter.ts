import type { LogEvent, PostgresPool } from 'kysely'
import type pg from 'pg'
import { createDurations, type Durations, secondsSince } from '../telemetry/durations.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import type { GuardedPool } from './guarded-pool.ts'
import { traceStatement } from './trace-statement.ts'

export type DatabaseMeter = {
  /** The pool for Kysely to use, watched. */
  watch: (pool: pg.Pool | GuardedPool) => PostgresPool
  /** Kysely's log. */
  onQuery: (event: LogEvent) => void
  measure: () => {
    /** Connections that are open, those of them that nobody uses, how many there may be, and who waits for one. */
    pool: { open: number; idle: number; max: number; waiting: number }
    waits: Durations
    failedWaits: number
    queries: Durations
    /** By class of SQLSTATE, `none` when there was no answer. */
    errors: ReadonlyMap<string, number>
  }
}

/** Counts and traces what statements take, and what they wait for a connection: a pool that is too small shows there first. */
export function createDatabaseMeter({ tracing }: { tracing: Tracing | undefined }): DatabaseMeter {
  const pools: (pg.Pool | GuardedPool)[] = []
  const waits = createDurations()
  const queries = createDurations()
  const errors = new Map<string, number>()
  let failedWaits = 0

  const connect = async (pool: pg.Pool | GuardedPool) => {
    const startedAtMs = performance.now()
    try {
      return await pool.connect()
    } catch (error) {
      failedWaits += 1
      throw error
    } finally {
      waits.add(secondsSince(startedAtMs))
    }
  }
  const total = (read: (pool: pg.Pool | GuardedPool) => number) => pools.reduce((sum, pool) => sum + read(pool), 0)
  return {
    watch: (pool) => {
      pools.push(pool)
      return { options: pool.options, connect: () => connect(pool), end: () => pool.end() }
    },
    onQuery: (event) => {
      queries.add(event.queryDurationMillis / 1000)
      if (tracing !== undefined) traceStatement(tracing, event)
      if (event.level === 'query') return
      const kind = classOf(event.error)
      errors.set(kind, (errors.get(kind) ?? 0) + 1)
    },
    measure: () => ({
      pool: {
        open: total(({ totalCount }) => totalCount),
        idle: total(({ idleCount }) => idleCount),
        max: total(({ options }) => options.max),
        waiting: total(({ waitingCount }) => waitingCount),
      },
      waits,
      failedWaits,
      queries,
      errors,
    }),
  }
}

/** PostgreSQL, appendix A: the first two characters of a SQLSTATE are its class. */
function classOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^[0-9A-Z]{5}$/.test(code) ? code.slice(0, 2) : 'none'
}
