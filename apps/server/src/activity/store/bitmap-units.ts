import { LRUCache } from 'lru-cache'
import { dayMs, hourMs } from '../../time.ts'
import { type BitmapKey, nameOfKey } from './apply-observations.ts'
import { addSorted, type Bitmap, createBitmap, readBitmap } from './bitmaps.ts'

export type UnitKind = 'hours' | 'days'
export const lengthOfKind = { hours: hourMs, days: dayMs } satisfies Record<UnitKind, number>

/** Who was seen in an hour, a day or several days, by what they ran. */
export type Unit = {
  entries: Map<string, { key: BitmapKey; bitmap: Bitmap }>
  sizeBytes: number
  /** What was counted of it before, until it changes. */
  memo: Map<string, unknown>
  /** Readers at work: it is not disposed of under them. */
  pins: number
  isEvicted: boolean
}

export type UnitRow = {
  startMs: number
  release_version: string | null
  patch_number: number
  platform: string
  devices: Buffer
}

/** About what an entry costs beside its numbers. */
const entryBytes = 200

export function createUnit(): Unit {
  return { entries: new Map(), sizeBytes: entryBytes, memo: new Map(), pins: 0, isEvicted: false }
}

/** Adds a part as it is stored. */
export function addPart(unit: Unit, row: UnitRow): void {
  const key = { release: row.release_version, patch: row.patch_number, platform: row.platform }
  const bitmap = readBitmap(row.devices)
  if (!takeEntry(unit, key, bitmap, row.devices.length)) bitmap.dispose()
}

/** Adds all that the other has. */
export function addUnit(unit: Unit, other: Unit): void {
  for (const { key, bitmap } of other.entries.values()) {
    const known = unit.entries.get(nameOfKey(key))
    if (known === undefined) takeEntry(unit, key, bitmap.clone(), 0)
    else known.bitmap.orInPlace(bitmap)
  }
}

/** Whether the bitmap became the unit's own. */
function takeEntry(unit: Unit, key: BitmapKey, bitmap: Bitmap, sizeBytes: number): boolean {
  const name = nameOfKey(key)
  const known = unit.entries.get(name)
  unit.sizeBytes += sizeBytes
  if (known !== undefined) {
    known.bitmap.orInPlace(bitmap)
    return false
  }
  unit.sizeBytes += entryBytes
  unit.entries.set(name, { key, bitmap })
  return true
}

/** `sorted` ascending. */
export function addToUnit(unit: Unit, key: BitmapKey, sorted: Uint32Array): void {
  const known = unit.entries.get(nameOfKey(key))
  if (known === undefined) {
    const bitmap = createBitmap(sorted)
    takeEntry(unit, key, bitmap, sizeOf(bitmap))
  } else {
    const before = sizeOf(known.bitmap)
    addSorted(known.bitmap, sorted)
    unit.sizeBytes += sizeOf(known.bitmap) - before
  }
  unit.memo.clear()
}

function sizeOf(bitmap: Bitmap): number {
  return bitmap.getSerializationSizeInBytes('portable')
}

/** Whether any of them was there. */
export function removeFromUnit(unit: Unit, numbers: ReadonlySet<number>): boolean {
  let isFound = false
  for (const { bitmap } of unit.entries.values()) {
    for (const number of numbers) if (bitmap.delete(number)) isFound = true
  }
  return isFound
}

/** After a unit was put together: what its bitmaps take. */
export function measureUnit(unit: Unit): void {
  unit.sizeBytes = entryBytes
  for (const { bitmap } of unit.entries.values()) {
    unit.sizeBytes += entryBytes + sizeOf(bitmap)
  }
}

export function disposeUnit(unit: Unit): void {
  for (const { bitmap } of unit.entries.values()) bitmap.dispose()
  unit.entries.clear()
}

/** A unit that is read must be given back with `unpinUnit`. */
export function pinUnit(unit: Unit): Unit {
  unit.pins += 1
  return unit
}

export function unpinUnit(unit: Unit): void {
  unit.pins -= 1
  if (unit.pins === 0 && unit.isEvicted) disposeUnit(unit)
}

/** Days are named by their range too, since the union of several is kept as if it were one. */
export type UnitName = { app: number; fromMs: number; toMs: number }

/** Units in memory, those that were read least recently leaving first. */
export type UnitCache = {
  get: (name: UnitName) => Unit | undefined
  set: (name: UnitName, unit: Unit) => void
  /** Every unit of the app that has the time in it. */
  listAt: (app: number, timeMs: number) => [UnitName, Unit][]
  drop: (name: UnitName) => void
  dropApp: (app: number) => void
  sizeBytes: () => number
}

export function createUnitCache(maxBytes: number): UnitCache {
  const names = new Map<number, Map<string, UnitName>>()
  // A new object each time: the size of one that is there already is not calculated again.
  const cache = new LRUCache<string, { unit: Unit }>({
    maxSize: maxBytes,
    sizeCalculation: ({ unit }) => unit.sizeBytes,
    dispose: ({ unit }, text, reason) => {
      if (reason === 'set') return
      names.get(Number.parseInt(text, 10))?.delete(text)
      unit.isEvicted = true
      if (unit.pins === 0) disposeUnit(unit)
    },
  })
  const textOf = ({ app, fromMs, toMs }: UnitName) => `${app}:${fromMs}:${toMs}`
  const drop = (name: UnitName) => void cache.delete(textOf(name))
  return {
    get: (name) => cache.get(textOf(name))?.unit,
    set: (name, unit) => {
      // One that alone is larger than the cache is used once.
      if (unit.sizeBytes > maxBytes) {
        drop(name)
        unit.isEvicted = true
        return
      }
      const ofApp = names.get(name.app) ?? new Map<string, UnitName>()
      names.set(name.app, ofApp)
      ofApp.set(textOf(name), name)
      cache.set(textOf(name), { unit })
    },
    listAt: (app, timeMs) =>
      [...(names.get(app)?.values() ?? [])].flatMap((name) => {
        const unit = timeMs >= name.fromMs && timeMs < name.toMs ? cache.peek(textOf(name))?.unit : undefined
        return unit === undefined ? [] : [[name, unit] satisfies [UnitName, Unit]]
      }),
    drop,
    dropApp: (app) => {
      for (const name of [...(names.get(app)?.values() ?? [])]) drop(name)
      names.delete(app)
    },
    sizeBytes: () => cache.calculatedSize,
  }
}
