import { expect } from 'vitest'
import { patchPlatforms, type Question } from './commands.ts'
import { countInMemory } from './count-in-memory.ts'
import type { SqlCounts } from './count-in-sql.ts'
import type { Counts, Window } from './counts.ts'
import {
  expectActiveHours,
  expectAdoptionSeries,
  expectCounted,
  expectHeatmap,
  expectNewDevices,
  expectRange,
  expectVersions,
  readRange,
} from './expected-answers.ts'
import { dayMs } from './requests.ts'
import type { World } from './world.ts'

/** Asks every endpoint, and whoever counts rows: all must say the same. */
export async function askEverything(world: World, inSql: SqlCounts, question: Question): Promise<void> {
  await inSql.load(world.requests)
  const compare = async (name: string, answer: unknown, expected: (counts: Counts) => Promise<unknown>) => {
    const inMemory = await expected(countInMemory(world.requests))
    expect(await expected(inSql), `${name}, in SQL`).toEqual(inMemory)
    expect(answer, name).toEqual(inMemory)
  }
  await askOfNow(world, question, compare)
  const query = toQuery(question, world.clock.nowMs)
  if (query === undefined) return
  await askAdoption(world, question, query, compare)
  await askUniqueUsers(world, question, query, compare)
  await askEvents(world, question, query, compare)
}

const hourMs = 3_600_000

type Compare = (name: string, answer: unknown, expected: (counts: Counts) => Promise<unknown>) => Promise<void>
type Query = { start?: string; end?: string; granularity?: NonNullable<Question['granularity']> }

/** undefined where the window would end before it begins: the service refuses those. */
function toQuery({ fromAgoMs, toAgoMs, granularity }: Question, nowMs: number): Query | undefined {
  const endMs = nowMs - (toAgoMs ?? 0)
  const startMs = fromAgoMs === undefined ? endMs - dayMs : nowMs - fromAgoMs
  if (startMs >= endMs) return undefined
  return {
    ...(fromAgoMs === undefined ? {} : { start: new Date(startMs).toISOString() }),
    ...(toAgoMs === undefined ? {} : { end: new Date(endMs).toISOString() }),
    ...(granularity === undefined ? {} : { granularity }),
  }
}

async function askOfNow({ api, appId, clock: { nowMs } }: World, { windowDays }: Question, compare: Compare) {
  const params = { appId }
  await compare('versions', await api.getVersionDistribution({ params }), (counts) => expectVersions(counts, nowMs))
  const newDevices = await api.getNewDevices({ params, query: { window_days: String(windowDays) } })
  await compare('new devices', newDevices, (counts) => expectNewDevices(counts, windowDays, nowMs))
  await compare('active hours', await api.getActiveHours({ params }), (counts) => expectActiveHours(counts, nowMs))
  await compare('heatmap', await api.getActivityHeatmap({ params }), (counts) => expectHeatmap(counts, nowMs))
}

type Range = { start: string; end: string }

/** What the answer says that it counted, after making sure that this is what it should have counted. */
function readWindow(world: World, query: Query, range: Range): Window {
  const expected = expectRange(query, world.clock.nowMs)
  if (expected === undefined) expect(range.start).toBe(range.end)
  else expect(range).toEqual(expected)
  return { ...readRange(range, world.clock.nowMs), granularity: query.granularity }
}

async function askAdoption(world: World, question: Question, query: Query, compare: Compare): Promise<void> {
  const release = world.releases[question.byRelease ? 0 : 1]
  if (release === undefined) return
  const named = question.byRelease ? { release_version: release.version } : {}
  const answer = await world.api.getPatchAdoption({ params: { appId: world.appId }, query: { ...query, ...named } })
  const window = readWindow(world, query, answer.range)
  const patches = patchPlatforms.map((platforms, index) => ({ number: index + 1, platforms }))
  await compare('adoption', answer, async (counts) => {
    const series = await expectAdoptionSeries(counts, { release: release.version, patches, window })
    return {
      release_version: release.version,
      is_latest: !question.byRelease,
      granularity: query.granularity ?? null,
      range: answer.range,
      as_of: new Date(world.clock.nowMs).toISOString(),
      patches: patches.map(({ number, platforms }, index) => ({
        patch_number: number,
        target_platforms: platforms.toSorted(),
        is_rolled_back: release.rolledBack.has(number),
        series: series[index],
      })),
    }
  })
}

async function askUniqueUsers(world: World, question: Question, query: Query, compare: Compare): Promise<void> {
  const by = question.byRelease ? 'release_version' : 'platform'
  const groupBy = question.isGrouped ? by : undefined
  const answer = await world.api.getUniqueUsers({
    params: { appId: world.appId },
    query: { ...query, ...(groupBy === undefined ? {} : { group_by: groupBy }) },
  })
  const window = readWindow(world, query, answer.range)
  await compare('unique users', answer, async (counts) => {
    const counted = await counts.devices({ window, groupBy })
    const current = { ...expectCounted(counted, { count: 'unique_users', window, groupBy }), range: answer.range }
    const before = await expectPrevious(counts, answer.range, answer.previous ?? undefined)
    const devices = async (span: Window) => (await counts.devices({ window: span })).count
    const previous = before && { unique_users: await devices(before), range: answer.previous?.range }
    return {
      ...current,
      current,
      previous: previous ?? null,
      granularity: query.granularity ?? null,
      as_of: asOf(world),
    }
  })
}

async function askEvents(world: World, question: Question, query: Query, compare: Compare): Promise<void> {
  const { api, appId } = world
  const release = question.byRelease ? world.releases[0] : undefined
  const grouping = release === undefined ? 'release' : 'patch'
  const groupBy = question.isGrouped ? grouping : undefined
  const asked = { ...query, ...(groupBy === undefined ? {} : { group_by: groupBy }) }
  for (const type of ['__patch_install__', '__patch_download__'] as const) {
    const isInstall = type === '__patch_install__'
    const answer =
      release === undefined
        ? await api[isInstall ? 'getPatchInstalls' : 'getPatchDownloads']({
            params: { appId },
            query: asked as { group_by?: 'release' },
          })
        : await api[isInstall ? 'getReleasePatchInstalls' : 'getReleasePatchDownloads']({
            params: { appId, releaseId: release.id },
            query: asked as { group_by?: 'patch' },
          })
    const window = readWindow(world, query, answer.range)
    await compare(type, answer, async (counts) => {
      const of = { type, release: release?.version }
      const column = groupBy && (groupBy === 'patch' ? 'patch_number' : 'release_version')
      const counted = await counts.events({ ...of, window, groupBy: column })
      const current = { ...expectCounted(counted, { count: 'count', window, groupBy }), range: answer.range }
      const before = await expectPrevious(counts, answer.range, answer.previous)
      const previous = before && {
        count: (await counts.events({ ...of, window: before })).count,
        range: answer.previous?.range,
      }
      const common = { granularity: query.granularity ?? null, as_of: asOf(world) }
      return { ...current, current, ...(previous === undefined ? {} : { previous }), ...common }
    })
  }
}

/** The window before, as the answer names it; undefined where nothing was recorded before the window. */
async function expectPrevious(
  counts: Counts,
  range: Range,
  previous: { range: Range } | undefined,
): Promise<Window | undefined> {
  const firstMs = await counts.firstMs()
  const [startMs, endMs] = [Date.parse(range.start), Date.parse(range.end)]
  expect(previous !== undefined).toBe(firstMs !== undefined && firstMs < startMs)
  if (previous === undefined) return undefined
  const before = { fromMs: Date.parse(previous.range.start), toMs: Date.parse(previous.range.end) }
  if (before.fromMs < before.toMs) {
    expect(before.toMs).toBe(startMs)
    expect(before.toMs - before.fromMs).toBe(Math.floor((endMs - startMs) / hourMs) * hourMs)
  }
  return before
}

function asOf(world: World): string {
  return new Date(world.clock.nowMs).toISOString()
}
