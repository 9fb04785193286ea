import { z } from 'zod'

/** Every `code` an answer can carry, with its HTTP status and what it says when nothing more precise is known. */
export const errorTable = {
  invalid_request: { status: 400, title: 'The request is malformed; `details` names each field and why.' },
  size_mismatch: { status: 400, title: 'Fewer bytes arrived than were registered; nothing was kept.' },
  hash_mismatch: { status: 400, title: 'The bytes do not have the registered SHA-256; nothing was kept.' },
  unauthenticated: { status: 401, title: 'The credential is missing, unknown, expired or revoked.' },
  forbidden: { status: 403, title: 'The credential does not allow this.' },
  plan_required: { status: 403, title: "The organization's plan does not include this." },
  domain_not_allowed: { status: 403, title: 'The organization may not invite from this e-mail domain.' },
  invalid_signature: { status: 403, title: 'The signature of the URL is wrong.' },
  not_found: { status: 404, title: 'There is no such resource, or it is hidden from this credential.' },
  user_not_found: { status: 404, title: 'No account has that e-mail.' },
  request_timeout: { status: 408, title: 'The request body did not arrive in time.' },
  release_version_exists: { status: 409, title: 'The app already has a release with this version.' },
  channel_exists: { status: 409, title: 'The app already has a channel with this name.' },
  channel_is_default: { status: 409, title: 'The default channel cannot be deleted.' },
  artifact_exists: { status: 409, title: 'The release already has this artifact.' },
  patch_artifacts_create_existing_artifact: {
    status: 409,
    title: 'The patch already has this artifact, with the same hash.',
  },
  patch_artifacts_create_existing_artifact_hash_mismatch: {
    status: 409,
    title: 'The patch already has an artifact for this platform and arch, with another hash.',
  },
  patches_create_existing_patch_rolled_back: {
    status: 409,
    title: 'This client_patch_id belongs to a patch that is rolled back.',
  },
  organization_is_personal: {
    status: 409,
    title: 'A personal organization has one member, its owner, and lasts as long as the account.',
  },
  already_member: { status: 409, title: 'The account is a member already, with another role.' },
  owns_team_organization: { status: 409, title: 'The account owns a team organization; transfer or delete it first.' },
  upload_expired: { status: 410, title: 'The upload URL has expired; register the artifact again.' },
  payload_too_large: { status: 413, title: 'The body is larger than allowed; nothing was kept.' },
  upgrade_required: { status: 426, title: 'This client is too old for the server.' },
  rate_limited: { status: 429, title: 'Too many requests; `Retry-After` says how many seconds to wait.' },
  internal: { status: 500, title: 'The server failed; the log has the reason under the request id.' },
  unavailable: { status: 503, title: 'The server cannot answer now; try again.' },
} as const satisfies Record<string, { status: number; title: string }>

export type ErrorCode = keyof typeof errorTable

export const ErrorResponse = z
  .object({
    code: z.string().meta({ description: 'One of the codes that the route lists.' }),
    message: z.string().meta({ description: 'For a person.' }),
    details: z.string().optional().meta({ description: 'Which field, and why.' }),
  })
  .meta({ id: 'ErrorResponse' })
export type ErrorResponse = z.infer<typeof ErrorResponse>
