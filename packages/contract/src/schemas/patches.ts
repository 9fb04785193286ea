import { z } from 'zod'
import { ReleasePlatform, UploadMethod } from './enums.ts'
import { FreeformMetadata, Int64, Sha256Hex, Timestamp, text } from './primitives.ts'
import { Arch, FormSize, NotesUpdate, PodfileLockHash, UploadUrl } from './releases.ts'

export const Patch = z
  .object({
    id: Int64,
    number: Int64.meta({ description: 'From 1 per release; larger is newer.' }),
    notes: z.string().optional(),
  })
  .meta({ id: 'Patch' })
export type Patch = z.infer<typeof Patch>

export const CreatePatchRequest = z
  .object({
    release_id: Int64,
    metadata: FreeformMetadata.nullish(),
    client_patch_id: text({ max: 128 })
      .nullish()
      .meta({ description: 'Idempotency key: the same value on the same release returns the patch that exists.' }),
  })
  .meta({ id: 'CreatePatchRequest' })

export const CreatePatchResponse = Patch.extend({
  client_patch_id: z.string().optional(),
  channel: z.string().optional().meta({ description: 'Channel that an already existing patch is on.' }),
}).meta({ id: 'CreatePatchResponse' })

export const PatchArtifact = z
  .object({
    id: Int64,
    patch_id: Int64,
    arch: z.string(),
    platform: ReleasePlatform,
    hash: Sha256Hex.meta({ description: 'SHA-256 of the file that the device has after applying the patch.' }),
    size: Int64.meta({ description: 'Bytes of the uploaded diff.' }),
    created_at: Timestamp,
  })
  .meta({ id: 'PatchArtifact' })
export type PatchArtifact = z.infer<typeof PatchArtifact>

const patchArtifactText = {
  arch: Arch,
  platform: ReleasePlatform,
  hash: Sha256Hex.meta({ description: 'SHA-256 after patching; handed to devices unchanged, never verified here.' }),
  hash_signature: text({ max: 4096 })
    .nullish()
    .meta({ description: 'RSA PKCS#1 v1.5 signature over the text of `hash`, base64; handed on unchanged.' }),
  podfile_lock_hash: PodfileLockHash.nullish(),
}

export const CreatePatchArtifactRequest = z
  .object({ ...patchArtifactText, size: Int64.min(1).meta({ description: 'Bytes that will be uploaded.' }) })
  .meta({ id: 'CreatePatchArtifactRequest' })

export const CreatePatchArtifactForm = z
  .object({ ...patchArtifactText, size: FormSize.pipe(z.int().min(1)) })
  .meta({ id: 'CreatePatchArtifactForm', description: 'The same as form fields. The bytes are not part of it.' })

export const CreatePatchArtifactResponse = z
  .object({
    id: Int64,
    patch_id: Int64,
    arch: z.string(),
    platform: ReleasePlatform,
    hash: z.string(),
    size: Int64,
    url: UploadUrl,
    upload_method: UploadMethod,
  })
  .meta({ id: 'CreatePatchArtifactResponse' })

export const ReleasePatch = z
  .object({
    id: Int64,
    number: Int64,
    channel: z.string().optional().meta({ description: 'The one channel the patch is on, if any.' }),
    artifacts: z.array(PatchArtifact),
    is_rolled_back: z.boolean(),
    notes: z.string().optional(),
  })
  .meta({ id: 'ReleasePatch' })
export type ReleasePatch = z.infer<typeof ReleasePatch>

export const GetReleasePatchesResponse = z
  .object({ patches: z.array(ReleasePatch) })
  .meta({ id: 'GetReleasePatchesResponse' })

export const UpdatePatchRequest = z.object({ notes: NotesUpdate }).meta({ id: 'UpdatePatchRequest' })

export const PromotePatchRequest = z
  .object({ patch_id: Int64, channel_id: Int64 })
  .meta({ id: 'PromotePatchRequest', description: 'Moves the patch: it is on one channel at a time.' })
