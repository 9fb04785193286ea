import type { ReleasePlatform } from '@godwit/contract'
import type { ReplicaReads } from '../db/open-replica.ts'

/** A time to count over (Unix ms), from inclusive, to exclusive. Both are whole hours (UTC). */
export type Span = { fromMs: number; toMs: number }

export type GroupBy = 'platform' | 'release_version'

export type DeviceCounts = {
  devices: number
  /** Only with a `groupBy`; those without a device are left out. null: no release version was reported. */
  groups: { value: string | null; devices: number }[]
}

/** A line of an import that was not taken. Lines are counted from 1. */
export type RejectedLine = { line: number; reason: string }

export type ImportResult = {
  accepted: number
  duplicates: number
  /** The first of them. */
  rejected: RejectedLine[]
  rejectedCount: number
}

export type StoreMeasures = {
  /** Since the start of the process that compacts. */
  compactions: number
  compactedObservations: number
  /** Observations that were not counted: too many release versions or patch numbers. */
  dropped: number
  /** Age of the oldest observations that were not compacted, when it was last looked at. */
  lagMs: number
  /** What is held in memory, of bitmaps and of devices (bytes). */
  unitBytes: number
  stateBytes: number
  /** Questions that wait for their answer. */
  questions: number
  replicaReads: Readonly<ReplicaReads>
}

/**
 * What is recorded of an app's devices. Every answer includes all that was committed before the question. Rejects with an
 * AppError `unavailable` when the database is away, or when more is asked than can be answered in time.
 */
export type ActivityStore = {
  /** Devices whose latest observation is not before `sinceMs`, by the release of that observation. */
  countVersions: (input: {
    appId: string
    sinceMs: number
  }) => Promise<{ releaseVersion: string | null; devices: number }[]>
  /** Per patch, then per span: devices on the release with that patch or a higher one, and those on its platforms. */
  countAdoption: (input: {
    appId: string
    releaseVersion: string
    patches: { number: number; platforms: ReleasePlatform[] }[]
    spans: Span[]
  }) => Promise<{ devices: number; target: number }[][]>
  /** Distinct devices per span. */
  countDevices: (input: { appId: string; spans: Span[]; groupBy?: GroupBy | undefined }) => Promise<DeviceCounts[]>
  /** Devices whose first observation ever lies in each span, to the millisecond. */
  countNewDevices: (input: { appId: string; spans: Span[] }) => Promise<number[]>
  /** Distinct devices of every hour of the span. */
  countHourly: (input: { appId: string } & Span) => Promise<number[]>
  /** The time of the first observation ever (Unix ms), by the device table; undefined when there is none. */
  findFirstTime: (input: { appId: string }) => Promise<number | undefined>
  /** Returns when all that was committed before is in `activity_event_counts`. */
  compact: (input: { appId: string }) => Promise<void>
  /** Takes newline-delimited JSON. What was taken stays when the stream breaks off. */
  importObservations: (input: { appId: string; bytes: AsyncIterable<Uint8Array> }) => Promise<ImportResult>
  /** Removes what is recorded of a device; false when nothing is. */
  removeDevice: (input: { appId: string; clientId: string }) => Promise<boolean>
  /** Removes what is recorded of an app that was deleted. */
  removeApp: (input: { appId: string }) => Promise<void>
  /** Drops what is older than has to be kept. */
  keepRetention: () => Promise<void>
  /** Begins to compact without being asked. */
  start: () => void
  stop: () => Promise<void>
  measure: () => StoreMeasures
}
