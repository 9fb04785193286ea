import { hourMs } from '../../time.ts'
import type { ObservationContext } from '../segment.ts'
import type { AppState } from './app-state.ts'
import { appendNumber, createNumberList, type NumberList, sortNumbers } from './sort-numbers.ts'

/** Observations of one app, in the order in which they are to be applied. */
export type Batch = {
  count: number
  /** Of the devices; `noNumber` for one that is not counted. */
  numbers: Uint32Array
  /** Unix ms. */
  times: Float64Array
  /** Indexes of `table`. */
  contexts: Uint32Array
  table: ObservationContext[]
  /** Release versions of the table that are not counted. */
  refusedReleases: ReadonlySet<string | null>
}

/** Of a device that is one too many. */
export const noNumber = 0xffffffff

/** What one bitmap tells: who was seen running this. */
export type BitmapKey = { release: string | null; patch: number; platform: string }

/** Who was seen running something, by the start of the hour (Unix ms). */
export type Sightings = { key: BitmapKey; hours: Map<number, NumberList> }

export type EventCount = { startMs: number; release: string; patch: number; type: string; count: number }

export type Changes = {
  /** Devices of which the columns have changed, ascending. */
  devices: Uint32Array
  sightings: Sightings[]
  eventCounts: EventCount[]
  /** Observations of more devices, release versions or patch numbers than an app may have. */
  dropped: number
}

/** Anybody can invent versions and numbers, and each is rows of its own for months. No app has a hundredth of these. */
const maxKeys = 20_000

const installType = '__patch_install__'
const countedTypes = new Set([
  installType,
  '__patch_download__',
  '__patch_install_failure__',
  '__patch_update_failure__',
])

export function nameOfKey({ release, patch, platform }: BitmapKey): string {
  return `${platform}\0${patch}\0${release === null ? '' : `=${release}`}`
}

/**
 * Applies observations to the state and tells what has to be stored. The running patch of each is decided here, by what
 * its device has installed up to then.
 */
export function applyObservations(state: AppState, batch: Batch): Changes {
  const { columns, states } = state
  const collector = createCollector(state)
  const touched = createNumberList()
  const { chunks } = columns
  let dropped = 0
  for (let index = 0; index < batch.count; index += 1) {
    const number = batch.numbers[index] ?? 0
    const timeMs = batch.times[index] ?? 0
    const contextIndex = batch.contexts[index] ?? 0
    const context = batch.table[contextIndex] as ObservationContext
    if (number === noNumber || batch.refusedReleases.has(context.release)) {
      dropped += 1
      continue
    }
    const at = number & 0xffff
    let chunk = chunks[number >>> 16]
    if (chunk === undefined || at >= chunk.count) chunk = columns.chunkOf(number)
    const { event } = context
    const installed = event?.type === installType ? event.patch : undefined
    const running =
      installed ?? context.running ?? states.findRunning(chunk.state[at] ?? 0, context.release, context.rolledBack)
    if (!collector.see(contextIndex, context, running, timeMs - (timeMs % hourMs), number)) {
      dropped += 1
      continue
    }
    if (event !== undefined) collector.countEvent(event, context.release)
    if (installed !== undefined) {
      chunk.state[at] = states.install(chunk.state[at] ?? 0, context.release, installed)
    }
    const first = chunk.firstMs[at] ?? 0
    if (first === 0 || timeMs < first) chunk.firstMs[at] = timeMs
    if (timeMs >= (chunk.lastMs[at] ?? 0)) {
      chunk.lastMs[at] = timeMs
      chunk.release[at] = collector.releaseNumberOf(contextIndex, context.release)
    }
    appendNumber(touched, number)
  }
  return { devices: sortNumbers([touched]), ...collector.finish(), dropped }
}

type Collecting = Sightings & { lastHour: number; lastList: NumberList }

/** Observations that come one after the other mostly share their key and hour, so that the last of each is remembered. */
function createCollector({ keys, releases }: AppState) {
  const releaseNumbers: number[] = []
  const byKey = new Map<string, Collecting>()
  const lastOfContext: { running: number; collecting: Collecting }[] = []
  const counts = new Map<string, EventCount>()

  const find = (context: ObservationContext, running: number): Collecting | undefined => {
    const key = { release: context.release, patch: running, platform: context.platform }
    const name = nameOfKey(key)
    let collecting = byKey.get(name)
    if (collecting === undefined) {
      if (keys.size >= maxKeys && !keys.has(name)) return undefined
      keys.add(name)
      collecting = { key, hours: new Map(), lastHour: -1, lastList: createNumberList() }
      byKey.set(name, collecting)
    }
    return collecting
  }
  return {
    /** false: it is one key too many. */
    see: (
      contextIndex: number,
      context: ObservationContext,
      running: number,
      startMs: number,
      number: number,
    ): boolean => {
      let last = lastOfContext[contextIndex]
      if (last === undefined || last.running !== running) {
        const collecting = find(context, running)
        if (collecting === undefined) return false
        last = { running, collecting }
        lastOfContext[contextIndex] = last
      }
      const { collecting } = last
      if (collecting.lastHour !== startMs) {
        const list = collecting.hours.get(startMs) ?? createNumberList()
        collecting.hours.set(startMs, list)
        collecting.lastHour = startMs
        collecting.lastList = list
      }
      appendNumber(collecting.lastList, number)
      return true
    },
    releaseNumberOf: (contextIndex: number, release: string | null): number => {
      const known = releaseNumbers[contextIndex] ?? releases.numberOf(release)
      releaseNumbers[contextIndex] = known
      return known
    },
    countEvent: ({ type, patch, receivedHourMs }: NonNullable<ObservationContext['event']>, release: string | null) => {
      if (!countedTypes.has(type)) return
      const name = `${type}\0${patch}\0${receivedHourMs}\0${release ?? ''}`
      const known = counts.get(name)
      if (known === undefined) {
        counts.set(name, { startMs: receivedHourMs, release: release ?? '', patch, type, count: 1 })
      } else {
        known.count += 1
      }
    },
    finish: (): Pick<Changes, 'sightings' | 'eventCounts'> => ({
      sightings: [...byKey.values()].map(({ key, hours }) => ({ key, hours })),
      eventCounts: [...counts.values()],
    }),
  }
}
