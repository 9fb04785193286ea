import { setImmediate as yieldToOthers } from 'node:timers/promises'
import type { Db } from '../../db/connection.ts'
import { AppError } from '../../errors.ts'
import { dayMs, hourMs } from '../../time.ts'
import type { AppState } from './app-state.ts'
import {
  addPart,
  addUnit,
  createUnit,
  lengthOfKind,
  measureUnit,
  pinUnit,
  removeFromUnit,
  type Unit,
  type UnitKind,
  type UnitName,
  unpinUnit,
} from './bitmap-units.ts'
import { compactApp } from './compact-app.ts'
import { loadState } from './load-state.ts'
import { type AppRow, findApp, findLastSegmentId, listParts } from './queries.ts'
import { openSnapshot, readOnReplica } from './read-replica.ts'
import type { StoreContext } from './store-context.ts'

/** A question waits this long for what was committed before it to be compacted. */
const compactPatienceMs = 10_000

/** Of ten million devices an hour takes 2 MB and a day 20 MB. */
const unitsPerStatement = { hours: 24, days: 4 }

export type Reader = { context: StoreContext; db: Db; state: AppState }

/** Compacts all segments that are committed now. */
export async function drainApp(context: StoreContext, appId: string): Promise<void> {
  const target = await findLastSegmentId(context.db, { appId })
  const giveUpAt = performance.now() + compactPatienceMs
  for (let last = -1; target !== undefined && last < target; ) {
    const { lastSegmentId } = await compactApp(context, { appId, skipLocked: false })
    if (lastSegmentId === undefined) return
    last = lastSegmentId
    if (performance.now() > giveUpAt && last < target) {
      throw new AppError('unavailable', 'What devices sent is still being counted.', { retryAfterSeconds: 5 })
    }
  }
}

/** Asks about an app as of one moment. undefined: nothing was ever recorded of it. */
export async function readApp<Result>(
  context: StoreContext,
  appId: string,
  read: (reader: Reader) => Promise<Result>,
): Promise<Result | undefined> {
  return await context.exclusively(appId, async () => {
    await drainApp(context, appId)
    const readRow = async (db: Db, row: AppRow) => read({ context, db, state: await followApp(context, db, row) })
    const answer = await readOnReplica(context, appId, readRow)
    if (answer !== undefined) return answer.result
    return await openSnapshot(context.db).execute(async (db) => {
      const row = await findApp(db, { appId })
      return row === undefined ? undefined : await readRow(db, row)
    })
  })
}

async function followApp(context: StoreContext, db: Db, row: AppRow): Promise<AppState> {
  const { app_id: appId } = row
  try {
    const state = await loadState(db, context.units, context.states.get(appId), row)
    context.states.set(state)
    return state
  } catch (error) {
    // Half of it may be ahead of the server that is asked next: a standby can show a commit before the primary does.
    context.states.delete(appId)
    throw error
  }
}

/** The units that make up each span are read and handed to `use`, a few spans at a time. */
export async function forEachSpan(
  reader: Reader,
  spans: readonly { fromMs: number; toMs: number }[],
  use: (units: Unit[], index: number) => void,
): Promise<void> {
  const lists = spans.map(({ fromMs, toMs }) => splitSpan(reader.state.app, fromMs, toMs))
  for (let from = 0; from < lists.length; ) {
    let to = from
    for (let units = 0; to < lists.length && (to === from || units < unitsPerStatement.hours); to += 1) {
      units += lists[to]?.length ?? 0
    }
    const units = await loadUnits(reader, lists.slice(from, to).flat())
    try {
      let first = 0
      for (let index = from; index < to; index += 1) {
        const count = lists[index]?.length ?? 0
        use(units.slice(first, first + count), index)
        first += count
      }
    } finally {
      for (const unit of units) unpinUnit(unit)
    }
    from = to
    await yieldToOthers()
  }
}

/** Whole days as one, hours around them. */
export function splitSpan(app: number, fromMs: number, toMs: number): UnitName[] {
  const daysFrom = Math.ceil(fromMs / dayMs) * dayMs
  const daysTo = Math.floor(toMs / dayMs) * dayMs
  const names: UnitName[] = []
  const addHours = (from: number, to: number) => {
    for (let hour = from; hour < to; hour += hourMs) names.push({ app, fromMs: hour, toMs: hour + hourMs })
  }
  if (daysFrom >= daysTo) {
    addHours(fromMs, toMs)
    return names
  }
  addHours(fromMs, daysFrom)
  names.push({ app, fromMs: daysFrom, toMs: daysTo })
  addHours(daysTo, toMs)
  return names
}

/** In the order of the names, pinned. */
async function loadUnits(reader: Reader, names: UnitName[]): Promise<Unit[]> {
  const units = names.map((name) => findUnit(reader, name))
  for (const kind of ['hours', 'days'] as const) {
    const missing = names.flatMap((name, index) =>
      units[index] === undefined && lengthOf(name) === lengthOfKind[kind] ? [index] : [],
    )
    for (let from = 0; from < missing.length; from += unitsPerStatement[kind]) {
      const indexes = missing.slice(from, from + unitsPerStatement[kind])
      const wanted = indexes.map((index) => names[index] as UnitName)
      const read = await readUnits(reader, kind, wanted)
      for (const [position, index] of indexes.entries()) units[index] = read[position]
    }
  }
  const loaded: Unit[] = []
  for (const [index, unit] of units.entries()) {
    const name = names[index] as UnitName
    // The same days may be asked for twice.
    loaded.push(unit ?? findUnit(reader, name) ?? (await uniteDays(reader, name)))
  }
  return loaded
}

function lengthOf({ fromMs, toMs }: UnitName): number {
  return toMs - fromMs
}

function findUnit({ context }: Reader, name: UnitName): Unit | undefined {
  const unit = context.units.get(name)
  return unit === undefined ? undefined : pinUnit(unit)
}

/** Hours or days as they are stored, pinned. */
async function readUnits({ context, db, state }: Reader, kind: UnitKind, names: UnitName[]): Promise<Unit[]> {
  const rows = await listParts(db, { app: state.app, kind, startsMs: names.map(({ fromMs }) => fromMs) })
  const units = new Map(names.map(({ fromMs }) => [fromMs, createUnit()]))
  for (const row of rows) {
    const unit = units.get(row.startMs)
    if (unit !== undefined) addPart(unit, row)
  }
  return names.map((name) => {
    const unit = pinUnit(units.get(name.fromMs) ?? createUnit())
    removeFromUnit(unit, state.removed)
    context.units.set(name, unit)
    return unit
  })
}

/** The union of several days, which is kept as if it were one. */
async function uniteDays(reader: Reader, name: UnitName): Promise<Unit> {
  const union = pinUnit(createUnit())
  for (let from = name.fromMs; from < name.toMs; from += unitsPerStatement.days * dayMs) {
    const days: UnitName[] = []
    for (let day = from; day < Math.min(name.toMs, from + unitsPerStatement.days * dayMs); day += dayMs) {
      days.push({ app: name.app, fromMs: day, toMs: day + dayMs })
    }
    const units = await loadUnits(reader, days)
    for (const unit of units) {
      addUnit(union, unit)
      unpinUnit(unit)
    }
    await yieldToOthers()
  }
  measureUnit(union)
  reader.context.units.set(name, union)
  return union
}
