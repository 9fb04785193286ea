import { z } from 'zod'
import { ReleasePlatform, ReleaseStatus, UploadMethod } from './enums.ts'
import { FreeformMetadata, Int64, Sha256Hex, Timestamp, text } from './primitives.ts'

export const notesMaxLength = 10_000

/** `null` and a missing key both mean "leave as it is"; the empty string clears. */
export const NotesUpdate = text({ min: 0, max: notesMaxLength })
  .nullish()
  .meta({ description: 'Freeform notes. null or absent: unchanged. Empty: cleared.' })

export const Release = z
  .object({
    id: Int64,
    app_id: z.string(),
    version: z.string(),
    flutter_revision: z.string().meta({ description: 'Framework revision that built the release.' }),
    flutter_version: z.string().optional(),
    display_name: z.string().optional(),
    platform_statuses: z.partialRecord(ReleasePlatform, ReleaseStatus),
    created_at: Timestamp,
    updated_at: Timestamp,
    notes: z.string().optional(),
  })
  .meta({ id: 'Release' })
export type Release = z.infer<typeof Release>

export const GetReleasesResponse = z.object({ releases: z.array(Release) }).meta({ id: 'GetReleasesResponse' })
export const GetReleaseResponse = z.object({ release: Release }).meta({ id: 'GetReleaseResponse' })
export const CreateReleaseResponse = z.object({ release: Release }).meta({ id: 'CreateReleaseResponse' })

export const GetReleasesQuery = z.object({
  sideloadable: z.enum(['true', 'false']).optional().meta({
    description:
      'true: only releases with an artifact that can be sideloaded, each listing only the platforms that have one.',
  }),
})

export const CreateReleaseRequest = z
  .object({
    version: text({ max: 128 }).meta({ description: 'Version of the app, such as `1.2.3+4`.' }),
    flutter_revision: text({ max: 128 }),
    flutter_version: text({ max: 128 }).nullish(),
    display_name: text({ max: 128 }).nullish(),
  })
  .meta({ id: 'CreateReleaseRequest' })

export const UpdateReleaseRequest = z
  .object({
    status: ReleaseStatus.nullish(),
    platform: ReleasePlatform.nullish().meta({ description: 'The platform that `status` and `metadata` are for.' }),
    metadata: FreeformMetadata.nullish(),
    notes: NotesUpdate,
  })
  .superRefine((body, context) => {
    const needsPlatform = body.status != null || body.metadata != null
    if (needsPlatform && body.platform == null) {
      context.addIssue({ code: 'custom', path: ['platform'], message: 'required with status or metadata' })
    }
  })
  .meta({ id: 'UpdateReleaseRequest', description: 'null or an absent key leaves the value as it is.' })

export const ReleaseArtifact = z
  .object({
    id: Int64,
    release_id: Int64,
    arch: z.string(),
    platform: ReleasePlatform,
    hash: Sha256Hex,
    size: Int64.meta({ description: 'Bytes.' }),
    url: z.string().meta({ description: 'Signed download URL; needs no other authorization and expires.' }),
    podfile_lock_hash: z.string().optional(),
    can_sideload: z.boolean(),
  })
  .meta({ id: 'ReleaseArtifact' })
export type ReleaseArtifact = z.infer<typeof ReleaseArtifact>

export const GetReleaseArtifactsResponse = z
  .object({ artifacts: z.array(ReleaseArtifact) })
  .meta({ id: 'GetReleaseArtifactsResponse' })

export const GetReleaseArtifactsQuery = z.object({
  arch: text({ max: 64 }).optional(),
  platform: ReleasePlatform.optional(),
})

export const DeleteReleaseArtifactsQuery = z.object({ platform: ReleasePlatform.optional() })

export const Arch = text({ max: 64 }).meta({
  description: 'Open string: `aarch64`, `arm`, `x86_64`, or a bundle such as `aab`, `xcarchive`.',
})

export const PodfileLockHash = text({ max: 128 }).meta({ description: 'SHA-256 of Podfile.lock; returned verbatim.' })

/** multipart/form-data has only text; these read the two values that are not text in JSON. */
export const FormSize = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a whole number of bytes')
  .transform(Number)
  .meta({ description: 'Bytes, decimal.' })

const FormBoolean = z.enum(['true', 'false']).transform((value) => value === 'true')

const releaseArtifactText = {
  arch: Arch,
  platform: ReleasePlatform,
  hash: Sha256Hex.meta({ description: 'SHA-256 of exactly the bytes to be uploaded; verified.' }),
  filename: text({ max: 255 }).nullish(),
  podfile_lock_hash: PodfileLockHash.nullish(),
}

export const CreateReleaseArtifactRequest = z
  .object({
    ...releaseArtifactText,
    size: Int64.meta({ description: 'Bytes that will be uploaded.' }),
    can_sideload: z.boolean(),
  })
  .meta({ id: 'CreateReleaseArtifactRequest' })

export const CreateReleaseArtifactForm = z
  .object({ ...releaseArtifactText, size: FormSize, can_sideload: FormBoolean })
  .meta({ id: 'CreateReleaseArtifactForm', description: 'The same as form fields. The bytes are not part of it.' })

export const UploadUrl = z
  .string()
  .meta({ description: 'Signed URL for the bytes: multipart POST, raw POST, raw PUT, or resumable PUT.' })

export const CreateReleaseArtifactResponse = z
  .object({
    id: Int64,
    release_id: Int64,
    arch: z.string(),
    platform: ReleasePlatform,
    hash: z.string(),
    size: Int64,
    url: UploadUrl,
    upload_method: UploadMethod,
  })
  .meta({ id: 'CreateReleaseArtifactResponse' })
