import { z } from 'zod'
import { defineRoute } from '../route.ts'

const tag = 'Transfers'
const SignedUrlQuery = z.object({
  expires: z.string().optional().meta({ description: 'Unix time in seconds; absent where the URL does not expire.' }),
  signature: z.string(),
})

const uploadErrors = [
  'size_mismatch',
  'hash_mismatch',
  'upload_expired',
  'payload_too_large',
  'not_found',
  'artifact_exists',
] as const

export const transferRoutes = {
  uploadByPost: defineRoute({
    method: 'POST',
    path: '/uploads/{uploadId}',
    tag,
    summary: 'Upload the bytes of a registered artifact at once',
    description: 'As multipart/form-data with one part `file`, or raw. Repeating it after success answers 200 again.',
    access: { by: 'signature' },
    query: SignedUrlQuery,
    bytes: 'upload',
    success: { status: 200 },
    errors: [
      ...uploadErrors,
      'patch_artifacts_create_existing_artifact',
      'patch_artifacts_create_existing_artifact_hash_mismatch',
    ],
    audit: ['release_artifact.upload', 'release_artifact.replace', 'patch_artifact.upload'],
  }),
  uploadByPut: defineRoute({
    method: 'PUT',
    path: '/uploads/{uploadId}',
    tag,
    summary: 'Upload the bytes of a registered artifact, whole or in resumable chunks',
    description:
      'With `Content-Range: bytes FROM-TO/TOTAL` it stores a chunk, with `bytes */TOTAL` and no body it tells what is stored: 308 with `Range: bytes=0-LAST`, without Range when nothing is. The chunk that completes the file answers 200.',
    access: { by: 'signature' },
    query: SignedUrlQuery,
    bytes: 'upload',
    success: { status: 200, others: { 308: 'Incomplete; `Range` says what is stored.' } },
    errors: [
      ...uploadErrors,
      'patch_artifacts_create_existing_artifact',
      'patch_artifacts_create_existing_artifact_hash_mismatch',
    ],
    audit: ['release_artifact.upload', 'release_artifact.replace', 'patch_artifact.upload'],
  }),
  download: defineRoute({
    method: 'GET',
    path: '/downloads/{blobKey}',
    tag,
    summary: 'Download an artifact',
    description:
      'With Range (206), ETag and If-Range. A range that cannot be satisfied is answered with the whole file, because a device never recovers from 416.',
    access: { by: 'signature' },
    query: SignedUrlQuery,
    success: {
      status: 200,
      contentType: 'application/octet-stream',
      others: {
        206: 'The requested range.',
        302: 'The bytes are at `Location`, for some minutes: a bucket or a CDN.',
        304: 'The ETag matched.',
      },
    },
    errors: ['not_found'],
  }),
  uploadSpeedTest: defineRoute({
    method: 'POST',
    path: '/diagnostics/upload',
    tag: 'Diagnostics',
    summary: 'Measure upload speed: takes up to 16 MB and discards them',
    access: { by: 'signature' },
    query: SignedUrlQuery,
    bytes: 'upload',
    success: { status: 204 },
    errors: ['payload_too_large'],
    audit: { none: 'nothing is kept' },
  }),
  downloadSpeedTest: defineRoute({
    method: 'GET',
    path: '/diagnostics/download',
    tag: 'Diagnostics',
    summary: 'Measure download speed: exactly 16,000,000 bytes',
    access: { by: 'signature' },
    query: SignedUrlQuery,
    success: { status: 200, contentType: 'application/octet-stream' },
  }),
}
