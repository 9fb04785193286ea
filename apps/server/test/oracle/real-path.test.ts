import fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { askEverything } from './ask-everything.ts'
import { type Command, history, type Question } from './commands.ts'
import { countInSql, type SqlCounts } from './count-in-sql.ts'
import { createWorld, perform } from './world.ts'

/** More by hand: ORACLE_RUNS=300 npx vitest run apps/server/test/oracle */
const runs = Number(process.env.ORACLE_RUNS ?? 12)
/** Also of the search for a shorter history that fails, which could take an hour. */
const limitMs = 30_000 + runs * 3000
/** Every hour of every history is kept, so that windows are cut by nothing but hours. */
const hourlyRetentionDays = 400
const granularities = [undefined, 'hour', 'day', 'week', 'month'] as const

/** Goes on from one history to the next: nothing here expects time to go back. */
const clock = { nowMs: Math.floor(Date.now() / 2) * 2 + 1 }
let service: TestService
let account: TestAccount
let inSql: SqlCounts

beforeAll(async () => {
  service = await createTestService({ clock: () => new Date(clock.nowMs), config: { hourlyRetentionDays } })
  account = await service.createAccount()
  inSql = await countInSql(service.connectionString)
})
afterAll(async () => {
  await inSql.end()
  await service.stop()
})

/** In every granularity, with and without groups, over the default window. */
const lastQuestions: Question[] = granularities.flatMap((granularity) =>
  [false, true].map((isGrouped, index) => ({
    fromAgoMs: undefined,
    toAgoMs: undefined,
    granularity,
    isGrouped,
    byRelease: index === 0,
    windowDays: 28,
  })),
)

describe('the metrics', () => {
  it('are what brute force counts, after any history, at any time', { timeout: limitMs + 30_000 }, async () => {
    let running: Promise<void> = Promise.resolve()
    const check = async (commands: Command[]) => {
      const world = await createWorld(service, account, clock)
      for (const command of commands) {
        if (command.do === 'ask') await askEverything(world, inSql, command.question)
        else await perform(world, command)
      }
      for (const question of lastQuestions) await askEverything(world, inSql, question)
    }
    const property = fc.asyncProperty(history, (commands) => {
      running = check(commands)
      return running
    })
    try {
      await fc.assert(property, { numRuns: runs, interruptAfterTimeLimit: limitMs })
    } finally {
      // When the time is over, a history is still being played, and the service cannot end under it.
      await running.catch(() => undefined)
    }
  })
})
