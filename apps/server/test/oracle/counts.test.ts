import type { MetricsGranularity, ReleasePlatform } from '@godwit/contract'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/test-database.ts'
import { countInMemory } from './count-in-memory.ts'
import { countInSql, type SqlCounts } from './count-in-sql.ts'
import type { Counts, Window } from './counts.ts'
import { dayMs, type Request } from './requests.ts'

const runs = Number(process.env.ORACLE_RUNS ?? 100)
const hourMs = 3_600_000
const nowMs = Date.UTC(2026, 8, 16, 9, 34, 12, 345)
const platforms: ReleasePlatform[] = ['android', 'ios', 'linux']
const releases = ['1.0.0+1', '1.1.0+2', '', null]

let database: Awaited<ReturnType<typeof createTestDatabase>>
let inSql: SqlCounts

beforeAll(async () => {
  database = await createTestDatabase()
  inSql = await countInSql(database.connectionString)
})
afterAll(async () => {
  await inSql.end()
  await database.drop()
})

/** Often the same few moments, so that ties, repeats and edges of buckets happen. */
const timeMs = fc.oneof(
  fc.integer({ min: nowMs - 70 * dayMs, max: nowMs + 2 * dayMs }),
  fc.integer({ min: 0, max: 70 * 24 }).map((back) => Math.floor(nowMs / hourMs) * hourMs - back * hourMs),
  fc.constantFrom(nowMs, nowMs - 1, nowMs - dayMs, nowMs - 32 * dayMs, nowMs - 33 * dayMs, nowMs + 25 * hourMs),
)
const number = fc.integer({ min: 0, max: 4 })

const request: fc.Arbitrary<Request> = fc
  .record({
    kind: fc.constantFrom('check' as const, 'event' as const, 'import' as const),
    clientId: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    platform: fc.constantFrom(...platforms),
    arch: fc.constantFrom('aarch64', 'arm'),
    releaseVersion: fc.constantFrom(...releases),
    receivedMs: timeMs,
    toldMs: timeMs,
    running: fc.option(number),
    type: fc.constantFrom('__patch_install__', '__patch_download__', '__patch_install_failure__', '__other__'),
    patch: number,
    rolledBack: fc.uniqueArray(number, { maxLength: 3 }),
  })
  .map((all) => {
    if (all.kind === 'event') return { ...all, running: null, releaseVersion: all.releaseVersion ?? '' }
    return { ...all, type: null, patch: null, toldMs: all.kind === 'check' ? null : all.toldMs }
  })

/** The same request again and again, as devices do that got no answer. */
const requests = fc
  .array(fc.tuple(request, fc.boolean()), { maxLength: 40 })
  .map((all) =>
    all.flatMap(([one, isRepeated]) => (isRepeated ? [one, { ...one, receivedMs: one.receivedMs + 5 }] : [one])),
  )

const window: fc.Arbitrary<Window> = fc
  .record({
    fromMs: timeMs.map((time) => Math.floor(time / hourMs) * hourMs),
    hours: fc.integer({ min: 0, max: 32 * 24 }),
    granularity: fc.constantFrom<(MetricsGranularity | undefined)[]>(undefined, 'hour', 'day', 'week', 'month'),
  })
  .map(({ fromMs, hours, granularity }) => ({ fromMs, toMs: fromMs + hours * hourMs, granularity }))

const patches = fc.constantFrom<Patches[]>(
  [],
  [{ number: 1, platforms: ['android'] }],
  [
    { number: 1, platforms: ['android', 'ios'] },
    { number: 2, platforms: [] },
    { number: 4, platforms: ['ios', 'linux'] },
  ],
)

type Patches = Parameters<Counts['adoption']>[0]['patches']

/** Every question there is, about one window. */
async function ask(counts: Counts, window: Window, of: { patches: Patches }) {
  const type = '__patch_install__'
  return {
    versions: await counts.versions({ sinceMs: window.fromMs }),
    adoption: await counts.adoption({ release: '1.0.0+1', patches: of.patches, window }),
    devices: await counts.devices({ window }),
    byPlatform: await counts.devices({ window, groupBy: 'platform' }),
    byRelease: await counts.devices({ window, groupBy: 'release_version' }),
    newDevices: await counts.newDevices(window),
    firstMs: await counts.firstMs(),
    hours: await counts.hours(window),
    installs: await counts.events({ type, window }),
    installsByRelease: await counts.events({ type, window, groupBy: 'release_version' }),
    installsByPatch: await counts.events({ type, window, release: '1.1.0+2', groupBy: 'patch_number' }),
  }
}

describe('the metrics by brute force', () => {
  it('are the same in memory and in SQL, for any history and window', { timeout: 600_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(requests, window, patches, async (history, window, patches) => {
        await inSql.load(history)
        expect(await ask(inSql, window, { patches })).toEqual(await ask(countInMemory(history), window, { patches }))
      }),
      { numRuns: runs },
    )
  })
})
