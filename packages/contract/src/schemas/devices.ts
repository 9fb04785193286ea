import { z } from 'zod'
import { ReleasePlatform } from './enums.ts'
import { Int64, isStorableText, Sha256Hex } from './primitives.ts'

/** What devices name things by. However long: what nobody has is unknown, and unknown is no error. */
const deviceText = z.string().refine(isStorableText, 'must not contain NUL characters')
/** What is stored of an event is bounded. */
const storedText = deviceText.max(256)

export const PatchCheckRequest = z
  .object({
    app_id: deviceText,
    channel: deviceText,
    release_version: deviceText,
    platform: ReleasePlatform,
    arch: deviceText,
    client_id: deviceText
      .nullish()
      .meta({ description: 'Random per install; absent from updaters before October 2025.' }),
    patch_number: Int64.nullish().meta({
      description: 'Sent by updaters before July 2024: only a higher number is offered.',
    }),
    current_patch_number: Int64.nullish().meta({ description: 'What runs; does not change the answer.' }),
    patch_hash: z.string().nullish(),
  })
  .meta({ id: 'PatchCheckRequest' })
export type PatchCheckRequest = z.infer<typeof PatchCheckRequest>

export const PatchCheckMetadata = z
  .object({
    number: Int64,
    download_url: z
      .string()
      .meta({ description: 'Stays the same for the life of the artifact, so that downloads resume.' }),
    hash: Sha256Hex,
    hash_signature: z.string().optional(),
  })
  .meta({ id: 'PatchCheckMetadata' })
export type PatchCheckMetadata = z.infer<typeof PatchCheckMetadata>

export const PatchCheckResponse = z
  .object({
    patch_available: z.boolean(),
    patch: PatchCheckMetadata.optional(),
    rolled_back_patch_numbers: z
      .array(Int64)
      .optional()
      .meta({ description: 'Every rolled back number of the release; the device uninstalls them.' }),
  })
  .meta({ id: 'PatchCheckResponse' })
export type PatchCheckResponse = z.infer<typeof PatchCheckResponse>

export const PatchEvent = z
  .object({
    app_id: storedText.min(1),
    arch: storedText,
    client_id: storedText.min(1),
    type: storedText.min(1).meta({ description: 'Such as `__patch_install__`; unknown types are stored.' }),
    patch_number: Int64,
    platform: ReleasePlatform,
    release_version: storedText,
    timestamp: Int64.max(253_402_300_799).meta({ description: 'Unix time in seconds.' }),
    message: z.string().max(4096).refine(isStorableText, 'must not contain NUL characters').nullish(),
  })
  .meta({ id: 'PatchEvent' })
export type PatchEvent = z.infer<typeof PatchEvent>

export const CreatePatchEventRequest = z.object({ event: PatchEvent }).meta({ id: 'CreatePatchEventRequest' })
export type CreatePatchEventRequest = z.infer<typeof CreatePatchEventRequest>
