import { z } from 'zod'
import { ReleasePlatform } from './enums.ts'
import { Instant, Int64, isStorableText } from './primitives.ts'

const storedText = z.string().max(256).refine(isStorableText, 'must not contain NUL characters')

export const ActivityImportLine = z
  .object({
    client_id: storedText.min(1),
    platform: ReleasePlatform,
    arch: storedText,
    release_version: storedText.nullish().meta({ description: 'null, absent or empty: not reported.' }),
    patch_number: Int64.nullish().meta({ description: 'null, absent or 0: the release itself.' }),
    time: Instant.meta({ description: 'ISO 8601 with a time zone; of any age.' }),
  })
  .meta({ id: 'ActivityImportLine', description: 'A line of the body: one device, seen once.' })
export type ActivityImportLine = z.infer<typeof ActivityImportLine>

/** Of an import, how many of the lines that were not taken its answer lists. */
export const maxRejectedLines = 1000

export const ImportActivityResponse = z
  .object({
    accepted: Int64,
    duplicates: Int64.meta({ description: 'Lines that were imported before.' }),
    rejected: z
      .array(z.object({ line: Int64.meta({ description: 'From 1.' }), reason: z.string() }))
      .meta({ description: `The first ${maxRejectedLines} lines that were not taken.` }),
    rejected_count: Int64.meta({ description: 'All lines that were not taken.' }),
  })
  .meta({ id: 'ImportActivityResponse' })
