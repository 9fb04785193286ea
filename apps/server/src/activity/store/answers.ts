import { maxMetricsPoints, type ReleasePlatform } from '@godwit/contract'
import { AppError } from '../../errors.ts'
import { hourMs } from '../../time.ts'
import type { DeviceCounts, GroupBy, Span } from '../activity-store.ts'
import type { Unit } from './bitmap-units.ts'
import { RoaringBitmap32, sizeOfUnion } from './bitmaps.ts'
import { findFirstMs } from './device-columns.ts'
import { needColumns } from './load-state.ts'
import { listHourTotals } from './queries.ts'
import { forEachSpan, type Reader } from './read-app.ts'

/** Questions of one unit. */
const maxRemembered = 32

export type AdoptionPatch = { number: number; platforms: ReleasePlatform[] }

/** By the release of the latest observation of each device. */
export async function countVersions(
  { db, state }: Reader,
  sinceMs: number,
): Promise<{ releaseVersion: string | null; devices: number }[]> {
  await needColumns(db, state)
  const counts = new Uint32Array(state.releases.count())
  for (const { count, firstMs, lastMs, release } of state.columns.chunks) {
    for (let index = 0; index < count; index += 1) {
      if ((lastMs[index] ?? 0) < sinceMs || firstMs[index] === 0) continue
      const number = release[index] ?? 0
      counts[number] = (counts[number] ?? 0) + 1
    }
  }
  return [...counts].flatMap((devices, number) =>
    devices === 0 ? [] : [{ releaseVersion: state.releases.versionOf(number), devices }],
  )
}

/** Devices that were seen for the first time in each span. */
export async function countNewDevices({ db, state }: Reader, spans: Span[]): Promise<number[]> {
  await needColumns(db, state)
  return spans.map(({ fromMs, toMs }) => {
    let devices = 0
    for (const { count, firstMs } of state.columns.chunks) {
      for (let index = 0; index < count; index += 1) {
        const first = firstMs[index] ?? 0
        if (first !== 0 && first >= fromMs && first < toMs) devices += 1
      }
    }
    return devices
  })
}

/** Unix ms. */
export async function findFirstTime({ db, state }: Reader): Promise<number | undefined> {
  if (state.firstMs === undefined) {
    await needColumns(db, state)
    state.firstMs = findFirstMs(state.columns)
  }
  return Number.isFinite(state.firstMs) ? state.firstMs : undefined
}

export async function countDevices(reader: Reader, spans: Span[], groupBy?: GroupBy): Promise<DeviceCounts[]> {
  const counts: DeviceCounts[] = []
  let points = 0
  await forEachSpan(reader, spans, (units, index) => {
    const counted = remember(units, `devices ${groupBy ?? ''}`, () => countUnits(units, groupBy))
    counts[index] = counted
    points += counted.groups.length
    // Not sent to the process that answers checks, which would have to read them.
    if (points > maxMetricsPoints) {
      throw new AppError('invalid_request', `granularity: the answer would have over ${maxMetricsPoints} points`)
    }
  })
  return counts
}

function countUnits(units: Unit[], groupBy: GroupBy | undefined): DeviceCounts {
  const entries = units.flatMap((unit) => [...unit.entries.values()])
  const devices = sizeOfUnion(entries.map(({ bitmap }) => bitmap))
  if (groupBy === undefined) return { devices, groups: [] }
  const groups = Map.groupBy(entries, ({ key }) => (groupBy === 'platform' ? key.platform : key.release))
  return {
    devices,
    groups: [...groups].flatMap(([value, ofGroup]) => {
      const size = sizeOfUnion(ofGroup.map(({ bitmap }) => bitmap))
      return size === 0 ? [] : [{ value, devices: size }]
    }),
  }
}

/** Per patch, then per span. */
export async function countAdoption(
  reader: Reader,
  input: { releaseVersion: string; patches: AdoptionPatch[]; spans: Span[] },
): Promise<{ devices: number; target: number }[][]> {
  const { releaseVersion, patches, spans } = input
  const points: { devices: number; target: number }[][] = patches.map(() => [])
  const question = `adoption ${JSON.stringify([releaseVersion, patches])}`
  await forEachSpan(reader, spans, (units) => {
    const ofSpan = remember(units, question, () => countAdoptionOfUnits(units, releaseVersion, patches))
    for (const [patch, point] of ofSpan.entries()) points[patch]?.push(point)
  })
  return points
}

/** From the highest patch down: who runs it or a higher one is a union that only grows. */
function countAdoptionOfUnits(units: Unit[], releaseVersion: string, patches: AdoptionPatch[]) {
  const entries = units
    .flatMap((unit) => [...unit.entries.values()].filter(({ key }) => key.release === releaseVersion))
    .toSorted((a, b) => b.key.patch - a.key.patch)
  const union = new RoaringBitmap32()
  let united = 0
  const uniteFrom = (patch: number) => {
    for (let entry = entries[united]; entry !== undefined && entry.key.patch >= patch; entry = entries[united]) {
      union.orInPlace(entry.bitmap)
      united += 1
    }
    return union.size
  }
  const devices = new Map<number, number>()
  for (const { number } of patches.toSorted((a, b) => b.number - a.number)) devices.set(number, uniteFrom(number))
  const all = uniteFrom(0)
  union.dispose()
  const targets = new Map<string, number>()
  const countTarget = (platforms: ReleasePlatform[]) => {
    const ofPlatforms = entries.filter(({ key }) => platforms.includes(key.platform as ReleasePlatform))
    return ofPlatforms.length === entries.length ? all : sizeOfUnion(ofPlatforms.map(({ bitmap }) => bitmap))
  }
  return patches.map(({ number, platforms }) => {
    const name = platforms.toSorted().join()
    const target = targets.get(name) ?? countTarget(platforms)
    targets.set(name, target)
    return { devices: devices.get(number) ?? 0, target }
  })
}

/** Distinct devices of every hour. Hours that are over are counted once. */
export async function countHourly(reader: Reader, { fromMs, toMs }: Span): Promise<number[]> {
  const { db, state } = reader
  const { hourTotals } = state
  const hours = Array.from({ length: (toMs - fromMs) / hourMs }, (_, index) => fromMs + index * hourMs)
  if (state.removed.size === 0 && hours.some((hour) => !hourTotals.has(hour))) {
    for (const { startMs, devices } of await listHourTotals(db, { app: state.app, fromMs, toMs })) {
      hourTotals.set(startMs, devices)
    }
  }
  const missing = hours.filter((hour) => !hourTotals.has(hour)).map((hour) => ({ fromMs: hour, toMs: hour + hourMs }))
  await forEachSpan(reader, missing, (units, index) => {
    const size = sizeOfUnion(units.flatMap((unit) => [...unit.entries.values()].map(({ bitmap }) => bitmap)))
    hourTotals.set(missing[index]?.fromMs ?? 0, size)
  })
  return hours.map((hour) => hourTotals.get(hour) ?? 0)
}

/** A unit that stands alone is asked the same again until it changes. */
function remember<Answer>(units: Unit[], question: string, count: () => Answer): Answer {
  const [unit] = units
  if (units.length !== 1 || unit === undefined) return count()
  const known = unit.memo.get(question) as Answer | undefined
  if (known !== undefined) return known
  const answer = count()
  if (unit.memo.size === maxRemembered) unit.memo.clear()
  unit.memo.set(question, answer)
  return answer
}
