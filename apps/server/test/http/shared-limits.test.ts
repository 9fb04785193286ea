import pino from 'pino'
import { afterEach, describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { createDeps } from '../../src/create-deps.ts'
import { createDeviceRateLimiter } from '../../src/devices/device-rate-limit.ts'
import { createTestDatabase } from '../support/test-database.ts'

const limit = 1000
let stopAll: () => Promise<void> = async () => {}
afterEach(() => stopAll())

/** Instances on one database, each with its own limiters. */
async function startInstances(count: number) {
  const database = await createTestDatabase()
  const log = pino({ level: 'silent' })
  const config = readConfig({ GODWIT_RATE_LIMIT: String(limit), GODWIT_ROLE: 'device' })
  const opened: Awaited<ReturnType<typeof createDeps>>[] = []
  for (let index = 0; index < count; index += 1) {
    opened.push(await createDeps({ config, log, connectionString: database.connectionString }))
  }
  stopAll = async () => {
    for (const { close } of opened) await close()
    await database.drop()
  }
  return opened.map(({ deps }) => ({
    caller: () => deps.rateLimiter.take('api_key:1') === undefined,
    device: createTake(deps),
  }))
}

function createTake(deps: Awaited<ReturnType<typeof createDeps>>['deps']) {
  const limiter = createDeviceRateLimiter(limit, deps.sharedCounts)
  return () => limiter.take('app', 'device') === undefined
}

/** Lets a window begin that is long enough for the rest of the test. */
async function waitForRoomInMinute(): Promise<void> {
  await expect.poll(() => Date.now() % 60_000, { timeout: 30_000, interval: 100 }).toBeLessThan(50_000)
}

describe.each([2, 3])('%i instances', (count) => {
  it.each(['caller', 'device'] as const)('let a %s through within a tenth of its limit together', async (who) => {
    const instances = await startInstances(count)
    await waitForRoomInMinute()
    let taken = 0
    let asked = 0
    // 2,500 in 4 s: 37 times what a minute allows.
    await expect
      .poll(
        () => {
          for (let request = 0; request < 25; request += 1) {
            asked += 1
            if (instances[asked % count]?.[who]()) taken += 1
          }
          return asked
        },
        { timeout: 25_000, interval: 40 },
      )
      .toBeGreaterThanOrEqual(2500)
    expect(taken).toBeGreaterThanOrEqual(limit * 0.9)
    expect(taken).toBeLessThanOrEqual(limit * 1.1)
  })
})
