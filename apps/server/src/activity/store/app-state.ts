import { createDeviceColumns, type DeviceColumns } from './device-columns.ts'
import { createDeviceDirectory, type DeviceDirectory } from './device-directory.ts'
import { createInstallStates, type InstallStates } from './install-states.ts'

/** Numbers of releases fit into 16 bits; number 0 is a release that was not reported. */
const maxReleases = 65_536

/** Release versions by number, as the device columns name them. */
export type Releases = {
  has: (version: string | null) => boolean
  /** A version that is new gets the next. Throws a RangeError when there is none. */
  numberOf: (version: string | null) => number
  versionOf: (number: number) => string | null
  count: () => number
}

/** What is recorded of the devices of one app as of change `seq`, without the bitmaps. */
export type AppState = {
  appId: string
  /** How the tables name the app. */
  app: number
  seq: number
  epoch: number
  /** Numbers that were given so far. */
  deviceCount: number
  /** When the first device was first seen (Unix ms): Infinity before any was. undefined: to be found in the columns. */
  firstMs: number | undefined
  directory: DeviceDirectory
  columns: DeviceColumns
  /** The columns are read when something needs them: most questions do not. */
  hasColumns: boolean
  states: InstallStates
  releases: Releases
  /** Of the releases and states, so many are stored. */
  storedReleases: number
  storedStates: number
  /** Numbers whose devices were deleted, and which bitmaps may still hold. */
  removed: Set<number>
  /** The change as of which each chunk of the columns is stored; what was changed since lies in so many bytes. */
  chunkSeqs: number[]
  dirtyChunks: Set<number>
  changeBytes: number
  /** Devices in the hours that are over, as far as they were counted: by Unix ms. */
  hourTotals: Map<number, number>
  /** The keys of bitmaps that observations have had since this was read. */
  keys: Set<string>
  /** Parts that the hours and days consist of, as far as this process has added any. */
  parts: Map<string, number>
}

/** Nothing is known yet of what was recorded. */
export function createAppState(row: { id: number; app_id: string; epoch: number }): AppState {
  return {
    appId: row.app_id,
    app: row.id,
    seq: -1,
    epoch: row.epoch,
    deviceCount: 0,
    firstMs: undefined,
    directory: createDeviceDirectory(),
    columns: createDeviceColumns(),
    hasColumns: false,
    states: createInstallStates(),
    releases: createReleases(),
    storedReleases: 1,
    storedStates: 1,
    removed: new Set(),
    chunkSeqs: [],
    dirtyChunks: new Set(),
    changeBytes: 0,
    hourTotals: new Map(),
    keys: new Set(),
    parts: new Map(),
  }
}

export function sizeOfState(state: AppState): number {
  return (
    state.directory.sizeBytes() + state.columns.sizeBytes() + state.states.sizeBytes() + state.keys.size * 100 + 10_000
  )
}

function createReleases(): Releases {
  const versions: (string | null)[] = [null]
  const numbers = new Map<string | null, number>([[null, 0]])
  return {
    has: (version) => numbers.has(version),
    numberOf: (version) => {
      const known = numbers.get(version)
      if (known !== undefined) return known
      if (versions.length === maxReleases) throw new RangeError('an app with more than 65,535 release versions')
      numbers.set(version, versions.length)
      return versions.push(version) - 1
    },
    versionOf: (number) => versions[number] ?? null,
    count: () => versions.length,
  }
}
