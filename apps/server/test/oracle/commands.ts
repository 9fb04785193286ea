import type { ReleasePlatform } from '@godwit/contract'
import fc from 'fast-check'

/** What may happen to an app, in any order. Times are milliseconds from the clock's time then. */
export type Command =
  | { do: 'check'; device: number; place: Place; patch: CheckPatch }
  | { do: 'event'; device: number; place: Place; type: string; patch: number; agoMs: number; times: number }
  | { do: 'import'; lines: ImportedLine[]; withFileBefore: boolean }
  | { do: 'roll'; release: number; patch: number }
  | { do: 'delete'; device: number }
  | { do: 'wait'; ms: number }
  | { do: 'compact' }
  | { do: 'restart' }
  | { do: 'ask'; question: Question }

export type Place = { platform: ReleasePlatform; arch: string; release: number }

/** The fields of a check that speak of a patch, in any of the ways of any updater. */
export type CheckPatch = { current_patch_number?: number | null; patch_number?: number | null }

/** `hoursAgo`: at the very beginning of an hour. */
export type ImportedTime = { agoMs: number } | { hoursAgo: number }
export type ImportedLine = { device: number; place: Place; patch: number | null; time: ImportedTime } | { bad: string }

/** Windows are cut anywhere: from and to are milliseconds before now. */
export type Question = {
  fromAgoMs: number | undefined
  toAgoMs: number | undefined
  granularity: 'hour' | 'day' | 'week' | 'month' | undefined
  isGrouped: boolean
  byRelease: boolean
  windowDays: number
}

/** A UUID is its own key, everything else is hashed: also a UUID in capitals, which is another device. */
export const clientIds = [
  '3f2b8c1e-6a51-4c07-9d0e-2f7a1b5c8e90',
  '3F2B8C1E-6A51-4C07-9D0E-2F7A1B5C8E90',
  'a4d1f0aa-0000-4000-8000-000000000001',
  'phone',
  'téléphone 📱 / ?',
]

/** The last one is not the app's, and '' is not reported. */
export const versions = ['1.0.0+1', '1.1.0+2', '', '9.9.9']
export const publishedReleases = 2
/** What each patch of a release has artifacts for. */
export const patchPlatforms: ReleasePlatform[][] = [['android'], ['android', 'ios'], []]

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

const device = fc.nat(clientIds.length - 1)
const place: fc.Arbitrary<Place> = fc.record({
  platform: fc.constantFrom<ReleasePlatform[]>('android', 'android', 'ios', 'linux'),
  arch: fc.constantFrom('aarch64', 'arm'),
  release: fc.oneof({ weight: 8, arbitrary: fc.nat(publishedReleases - 1) }, fc.nat(versions.length - 1)),
})
/** Also one that was never made. */
const patch = fc.integer({ min: 1, max: patchPlatforms.length + 1 })
const anyPatch = fc.oneof({ weight: 4, arbitrary: patch }, fc.constantFrom(0, null))

const checkPatch: fc.Arbitrary<CheckPatch> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  anyPatch.map((current_patch_number) => ({ current_patch_number })),
  anyPatch.map((patch_number) => ({ patch_number })),
  fc.record({ current_patch_number: anyPatch, patch_number: anyPatch }),
)

/** Mostly right, sometimes so wrong that it is not believed; whole seconds, as devices tell it. */
const deviceClock = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(0, 1000, 90 * minuteMs) },
  fc.integer({ min: -30 * hourMs, max: 35 * dayMs }).map((ms) => ms - (ms % 1000)),
  fc.constantFrom(-dayMs, -dayMs - 1000, 32 * dayMs, 32 * dayMs + 1000),
)

const historic = fc.oneof(
  fc.integer({ min: -dayMs + minuteMs, max: 75 * dayMs }),
  fc.integer({ min: 0, max: 40 * 24 }).map((hours) => hours * hourMs),
  fc.integer({ min: 0, max: 20 }).map((minutes) => minutes * minuteMs),
)
const importedTime = fc.oneof(
  historic.map((agoMs) => ({ agoMs })),
  fc.integer({ min: 0, max: 40 * 24 }).map((hoursAgo) => ({ hoursAgo })),
)
const importedLine: fc.Arbitrary<ImportedLine> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ device, place, patch: fc.option(fc.integer({ min: 0, max: 4 })), time: importedTime }),
  },
  fc.constantFrom('{', '{"client_id":""}', '[]', '"a"', '{"client_id":"a","platform":"amiga"}').map((bad) => ({ bad })),
)

const jump = fc.oneof(
  fc.integer({ min: 1, max: 3 * hourMs }),
  fc.integer({ min: 1, max: 3 * dayMs }),
  fc.constantFrom(2, hourMs, dayMs, 9 * dayMs),
)

const ago = fc.option(fc.oneof(historic, fc.constantFrom(0, 1, hourMs, 28 * dayMs, 32 * dayMs, 40 * dayMs)), {
  nil: undefined,
})

export const question: fc.Arbitrary<Question> = fc.record({
  fromAgoMs: ago,
  toAgoMs: ago,
  granularity: fc.constantFrom('hour', 'day', 'week', 'month', undefined),
  isGrouped: fc.boolean(),
  byRelease: fc.boolean(),
  windowDays: fc.constantFrom(1, 7, 28, 60),
})

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 30, arbitrary: fc.record({ do: fc.constant('check' as const), device, place, patch: checkPatch }) },
  {
    weight: 30,
    arbitrary: fc.record({
      do: fc.constant('event' as const),
      device,
      place,
      type: fc.constantFrom(
        '__patch_install__',
        '__patch_install__',
        '__patch_download__',
        '__patch_install_failure__',
        '__something_else__',
      ),
      patch,
      agoMs: deviceClock,
      times: fc.constantFrom(1, 1, 2),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('import' as const),
      lines: fc.array(importedLine, { maxLength: 8 }),
      withFileBefore: fc.boolean(),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('roll' as const),
      release: fc.nat(publishedReleases - 1),
      patch: fc.integer({ min: 1, max: patchPlatforms.length }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), device }) },
  { weight: 15, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: jump }) },
  { weight: 5, arbitrary: fc.constant({ do: 'compact' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'restart' as const }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('ask' as const), question }) },
)

export const history = fc.array(command, { minLength: 5, maxLength: 60, size: 'max' })
