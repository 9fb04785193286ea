import { z } from 'zod'
import { ReleasePlatform } from './enums.ts'
import { Int64, Timestamp } from './primitives.ts'

export const MetricsGranularity = z.enum(['hour', 'day', 'week', 'month']).meta({ id: 'MetricsGranularity' })
export type MetricsGranularity = z.infer<typeof MetricsGranularity>

const Percentage = z.number().min(0).max(1)

export const VersionDistributionEntry = z
  .object({
    release_version: z.string().nullable().meta({ description: 'null: devices too old to report it.' }),
    releaseVersion: z.string().nullable(),
    device_count: Int64,
    deviceCount: Int64,
    percentage: Percentage,
  })
  .meta({ id: 'VersionDistributionEntry', description: 'Both spellings carry the same values.' })

export const GetVersionDistributionResponse = z
  .object({
    entries: z.array(VersionDistributionEntry),
    total_devices: Int64,
    active_window_days: Int64,
    as_of: Timestamp,
  })
  .meta({ id: 'GetVersionDistributionResponse' })

export const MetricsRange = z
  .object({
    start: Timestamp.meta({ description: 'Inclusive.' }),
    end: Timestamp.meta({ description: 'Exclusive.' }),
  })
  .meta({ id: 'MetricsRange', description: 'The window that was counted.' })

export const PatchAdoptionPoint = z
  .object({
    period: Timestamp.nullable().meta({ description: 'Start of the bucket; null for the whole window.' }),
    devices: Int64,
    target: Int64,
    adoption_pct: Percentage,
  })
  .meta({ id: 'PatchAdoptionPoint' })

export const PatchAdoption = z
  .object({
    patch_number: Int64,
    target_platforms: z.array(ReleasePlatform),
    is_rolled_back: z.boolean(),
    series: z.array(PatchAdoptionPoint),
  })
  .meta({ id: 'PatchAdoption' })

export const GetPatchAdoptionQuery = z.object({
  release_version: z.string().optional(),
  start: z.iso.datetime({ offset: true }).optional(),
  end: z.iso.datetime({ offset: true }).optional(),
  granularity: MetricsGranularity.optional(),
})

export const GetPatchAdoptionResponse = z
  .object({
    release_version: z.string(),
    is_latest: z.boolean(),
    granularity: MetricsGranularity.nullable(),
    range: MetricsRange,
    as_of: Timestamp,
    patches: z.array(PatchAdoption),
  })
  .meta({ id: 'GetPatchAdoptionResponse' })
