import type { MetricsGranularity, ReleasePlatform } from '@godwit/contract'

/** Unix ms, from inclusive, to exclusive. */
export type Span = { fromMs: number; toMs: number }

/** With a granularity, also each bucket of it, cut to the window. */
export type Window = Span & { granularity?: MetricsGranularity | undefined }

/** `periodMs`: the start of the bucket by the calendar, also where the window cuts it. */
export type Point = { periodMs: number; count: number }

export type Group<Value> = { value: Value; count: number; series: Point[] }

/** `series`: empty without a granularity, and without the buckets in which nothing was. */
export type Counted<Value> = { count: number; series: Point[]; groups: Group<Value>[] }

/** `periodMs`: undefined for the whole window. */
export type AdoptionPoint = { periodMs: number | undefined; devices: number; target: number }

/** Everything that the metrics count, from the rows themselves: in memory, and in SQL. */
export type Counts = {
  /** In the order of the answer. */
  versions: (input: { sinceMs: number }) => Promise<{ release: string | null; devices: number }[]>
  /** Per patch: a point for each bucket, or one for the window. */
  adoption: (input: {
    release: string
    patches: { number: number; platforms: ReleasePlatform[] }[]
    window: Window
  }) => Promise<AdoptionPoint[][]>
  /** The groups in the order of their values, null first. */
  devices: (input: {
    window: Window
    groupBy?: 'platform' | 'release_version' | undefined
  }) => Promise<Counted<string | null>>
  newDevices: (span: Span) => Promise<number>
  /** The time of the first observation. */
  firstMs: () => Promise<number | undefined>
  /** Distinct devices of each hour, summed up by weekday (0 is Sunday) and hour (UTC): 7 × 24 cells. */
  hours: (span: Span) => Promise<number[]>
  /** The groups in the order of their values. Of one release, or of all. */
  events: (input: {
    type: string
    window: Window
    release?: string | undefined
    groupBy?: 'release_version' | 'patch_number' | undefined
  }) => Promise<Counted<string | number>>
}
