import { z } from 'zod'
import { ReleasePlatform } from './enums.ts'
import { Instant, Int64, isStorableText, Timestamp } from './primitives.ts'

export const MetricsGranularity = z.enum(['hour', 'day', 'week', 'month']).meta({
  id: 'MetricsGranularity',
  description: 'Size of the buckets, UTC. Weeks begin on Monday. The first and the last bucket are cut to the window.',
})
export type MetricsGranularity = z.infer<typeof MetricsGranularity>

const Percentage = z.number().min(0).max(1)
const Average = z.number().nonnegative()

/** Points of one answer, over all of its series: about 8 MB. */
export const maxMetricsPoints = 100_000

export const MetricsRange = z
  .object({
    start: Timestamp.meta({ description: 'Inclusive.' }),
    end: Timestamp.meta({ description: 'Exclusive.' }),
  })
  .meta({ id: 'MetricsRange', description: 'The window that was counted.' })

/** Far from the ends of what a JavaScript date and a four-digit year can tell. */
const MetricsTime = Instant.refine((value) => {
  const timeMs = Date.parse(value)
  return Number.isNaN(timeMs) || (timeMs >= 0 && timeMs < Date.UTC(9999))
}, 'must lie in the years 1970 to 9998')

const windowQuery = {
  start: MetricsTime.optional().meta({
    description:
      'Inclusive. Default: 28 days before `end`; moved up so that the window is 32 days at most. Rounded up to the hour (in the current hour, down).',
  }),
  end: MetricsTime.optional().meta({
    description: 'Exclusive. Default: now. Rounded down to the hour, unless it lies in the current one.',
  }),
  granularity: MetricsGranularity.optional(),
}

const Period = Timestamp.meta({ description: 'Start of the bucket by the calendar, also where the window cuts it.' })
const seriesDescription = 'With `granularity`. Buckets without anything are left out.'

export const VersionDistributionEntry = z
  .object({
    release_version: z.string().nullable().meta({ description: 'null: devices too old to report it.' }),
    releaseVersion: z.string().nullable(),
    device_count: Int64,
    deviceCount: Int64,
    percentage: Percentage.meta({ description: 'Share of `total_devices`, 0 to 1.' }),
  })
  .meta({ id: 'VersionDistributionEntry', description: 'Both spellings carry the same values.' })

export const GetVersionDistributionResponse = z
  .object({
    entries: z
      .array(VersionDistributionEntry)
      .meta({ description: 'Most devices first, then by version, those without a version last.' }),
    total_devices: Int64,
    active_window_days: Int64,
    range: MetricsRange,
    as_of: Timestamp,
  })
  .meta({ id: 'GetVersionDistributionResponse' })

export const PatchAdoptionPoint = z
  .object({
    period: Period.nullable().meta({ description: 'Start of the bucket by the calendar; null for the whole window.' }),
    devices: Int64.meta({ description: 'Devices that ran this patch or a higher one.' }),
    target: Int64.meta({ description: 'Devices on the release whose platform the patch was built for.' }),
    adoption_pct: Percentage.meta({ description: 'devices / target, 0 to 1; 0 when there is no target.' }),
  })
  .meta({ id: 'PatchAdoptionPoint' })

export const PatchAdoption = z
  .object({
    patch_number: Int64,
    target_platforms: z.array(ReleasePlatform),
    is_rolled_back: z.boolean(),
    series: z
      .array(PatchAdoptionPoint)
      .meta({ description: 'With `granularity` one point for each bucket, else one for the window.' }),
  })
  .meta({ id: 'PatchAdoption' })

export const GetPatchAdoptionQuery = z.object({
  release_version: z
    .string()
    .refine(isStorableText, 'must not contain NUL characters')
    .optional()
    .meta({ description: "Default: the app's newest release by creation." }),
  ...windowQuery,
})

export const GetPatchAdoptionResponse = z
  .object({
    release_version: z.string(),
    is_latest: z.boolean().meta({ description: 'Whether it is the newest release, named or not.' }),
    granularity: MetricsGranularity.nullable(),
    range: MetricsRange,
    as_of: Timestamp,
    patches: z.array(PatchAdoption).meta({ description: 'All patches of the release, by number.' }),
  })
  .meta({ id: 'GetPatchAdoptionResponse' })

export const UniqueUsersPoint = z.object({ period: Period, unique_users: Int64 }).meta({ id: 'UniqueUsersPoint' })

const uniqueUsersSeries = z.array(UniqueUsersPoint).optional().meta({ description: seriesDescription })

export const UniqueUsersGrouping = z.enum(['platform', 'release_version']).meta({ id: 'UniqueUsersGrouping' })

export const UniqueUsersGroup = z
  .object({
    group_by: UniqueUsersGrouping,
    group_value: z.string().meta({ description: 'Empty: no release version was reported.' }),
    unique_users: Int64,
    time_series: uniqueUsersSeries,
  })
  .meta({ id: 'UniqueUsersGroup', description: 'A device may be in several groups.' })

const previousDescription = 'The equal window just before.'

const uniqueUsers = {
  unique_users: Int64.meta({ description: 'Devices that were seen.' }),
  range: MetricsRange,
  time_series: uniqueUsersSeries,
}
const groupedUniqueUsers = {
  ...uniqueUsers,
  breakdown: z.array(UniqueUsersGroup).optional().meta({ description: 'With `group_by`. Most devices first.' }),
}

export const GetUniqueUsersQuery = z.object({ ...windowQuery, group_by: UniqueUsersGrouping.optional() })

export const GetUniqueUsersResponse = z
  .object({
    ...groupedUniqueUsers,
    as_of: Timestamp,
    granularity: MetricsGranularity.nullable(),
    current: z.object(groupedUniqueUsers).meta({ description: 'The same values as at the top.' }),
    previous: z
      .object(uniqueUsers)
      .nullable()
      .meta({ description: `${previousDescription} null: nothing was recorded before the window.` }),
  })
  .meta({ id: 'GetUniqueUsersResponse' })

export const GetNewDevicesQuery = z.object({
  window_days: z
    .string()
    .regex(/^0*([1-9]\d?|[1-3]\d\d|400)$/, 'must be 1 to 400')
    .transform(Number)
    .default(28)
    .meta({ description: '1 to 400.' }),
})

export const GetNewDevicesResponse = z
  .object({
    current: Int64.meta({ description: 'Devices first seen in the last `window_days`.' }),
    previous: Int64.nullable().meta({
      description: 'Those of the `window_days` before. null: nothing was recorded until then.',
    }),
    window_days: Int64,
    as_of: Timestamp,
  })
  .meta({ id: 'GetNewDevicesResponse' })

const HourUtc = z.int().min(0).max(23)
const BusiestHour = HourUtc.nullable().meta({ description: 'null: fewer than 7 days have data.' })
const DayOfWeekUtc = z.int().min(1).max(7)
const LookbackDays = Int64.meta({ description: 'How many whole days before today (UTC) were counted.' })
const averageDescription = 'Mean of the distinct devices of each such hour, hours without any included.'

export const GetActiveHoursResponse = z
  .object({
    hourly: z
      .array(z.object({ hour_utc: HourUtc, average_active_devices: Average.meta({ description: averageDescription }) }))
      .length(24),
    recommended_window_start_utc: HourUtc.nullable().meta({
      description: 'Where the quietest hours in a row begin. null: fewer than 7 days have data.',
    }),
    recommended_window_length_hours: Int64,
    busiest_hour_utc: BusiestHour,
    lookback_days: LookbackDays,
    as_of: Timestamp,
  })
  .meta({ id: 'GetActiveHoursResponse' })

export const GetActivityHeatmapResponse = z
  .object({
    cells: z
      .array(
        z.object({
          day_of_week_utc: DayOfWeekUtc.meta({ description: '1 Sunday to 7 Saturday.' }),
          hour_utc: HourUtc,
          average_active_devices: Average.meta({ description: averageDescription }),
        }),
      )
      .length(168),
    busiest_day_of_week_utc: DayOfWeekUtc.nullable().meta({ description: 'null: fewer than 7 days have data.' }),
    busiest_hour_utc: BusiestHour,
    lookback_days: LookbackDays,
    as_of: Timestamp,
  })
  .meta({ id: 'GetActivityHeatmapResponse' })

export const PatchEventPoint = z.object({ period: Period, count: Int64 }).meta({ id: 'PatchEventPoint' })

const patchEventSeries = z.array(PatchEventPoint).optional().meta({ description: seriesDescription })

const patchEvents = {
  count: Int64.meta({ description: 'What was received in the window; what a device sent again counts once.' }),
  range: MetricsRange,
  time_series: patchEventSeries,
}

/** Of the events of an app, or of one release: what they can be grouped by, and the query and answer that follow. */
function definePatchEventCounts<const By extends string>(groupBy: By, name: string) {
  const GroupBy = z.literal(groupBy)
  const grouped = {
    ...patchEvents,
    breakdown: z
      .array(
        z.object({ group_by: GroupBy, group_value: z.string(), count: Int64, time_series: patchEventSeries }).meta({
          id: `${name}Group`,
        }),
      )
      .optional()
      .meta({ description: 'With `group_by`. Most events first.' }),
  }
  return {
    query: z.object({ ...windowQuery, group_by: GroupBy.optional() }),
    response: z
      .object({
        ...grouped,
        as_of: Timestamp,
        granularity: MetricsGranularity.nullable(),
        current: z.object(grouped).meta({ description: 'The same values as at the top.' }),
        previous: z
          .object(patchEvents)
          .optional()
          .meta({ description: `${previousDescription} Absent: nothing was recorded before the window.` }),
      })
      .meta({ id: `Get${name}Response` }),
  }
}

export const { query: GetPatchEventCountsQuery, response: GetPatchEventCountsResponse } = definePatchEventCounts(
  'release',
  'PatchEventCounts',
)
export const { query: GetReleasePatchEventCountsQuery, response: GetReleasePatchEventCountsResponse } =
  definePatchEventCounts('patch', 'ReleasePatchEventCounts')
