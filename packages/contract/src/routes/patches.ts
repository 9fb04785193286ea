import { defineRoute } from '../route.ts'
import {
  CreatePatchArtifactForm,
  CreatePatchArtifactRequest,
  CreatePatchArtifactResponse,
  CreatePatchRequest,
  CreatePatchResponse,
  GetReleasePatchesResponse,
  PromotePatchRequest,
  UpdatePatchRequest,
} from '../schemas/patches.ts'

const tag = 'Patches'
const unchanged = { 304: 'It was so already; nothing changed.' } as const

export const patchRoutes = {
  listReleasePatches: defineRoute({
    method: 'GET',
    path: '/api/v1/apps/{appId}/releases/{releaseId}/patches',
    tag,
    summary: 'Patches of a release, newest first',
    access: { by: 'bearer', permission: 'app.read', on: 'app' },
    success: { status: 200, body: GetReleasePatchesResponse },
  }),
  createPatch: defineRoute({
    method: 'POST',
    path: '/api/v1/apps/{appId}/patches',
    tag,
    summary: 'Create a patch of a release',
    access: { by: 'bearer', permission: 'patch.write', on: 'app' },
    body: CreatePatchRequest,
    success: { status: 201, body: CreatePatchResponse },
    errors: ['patches_create_existing_patch_rolled_back'],
  }),
  updatePatch: defineRoute({
    method: 'PATCH',
    path: '/api/v1/apps/{appId}/releases/{releaseId}/patches/{patchId}',
    tag,
    summary: 'Set the notes of a patch',
    access: { by: 'bearer', permission: 'patch.write', on: 'app' },
    body: UpdatePatchRequest,
    success: { status: 204 },
  }),
  createPatchArtifact: defineRoute({
    method: 'POST',
    path: '/api/v1/apps/{appId}/patches/{patchId}/artifacts',
    tag,
    summary: 'Register a patch artifact and get its upload URL',
    description: 'The bytes follow in a second request to `url`. An uploaded artifact is never replaced.',
    access: { by: 'bearer', permission: 'patch.write', on: 'app' },
    body: CreatePatchArtifactRequest,
    form: CreatePatchArtifactForm,
    success: { status: 200, body: CreatePatchArtifactResponse },
    errors: ['patch_artifacts_create_existing_artifact', 'patch_artifacts_create_existing_artifact_hash_mismatch'],
  }),
  promotePatch: defineRoute({
    method: 'POST',
    path: '/api/v1/apps/{appId}/patches/promote',
    tag,
    summary: 'Move a patch to a channel',
    access: { by: 'bearer', permission: 'patch.write', on: 'app' },
    body: PromotePatchRequest,
    success: { status: 204 },
  }),
  rollBackPatch: defineRoute({
    method: 'POST',
    path: '/api/v1/apps/{appId}/releases/{releaseId}/patches/{patchId}/rollback',
    tag,
    summary: 'Roll a patch back: devices uninstall it',
    access: { by: 'bearer', permission: 'patch.write', on: 'app' },
    success: { status: 204, others: unchanged },
  }),
  rollForwardPatch: defineRoute({
    method: 'POST',
    path: '/api/v1/apps/{appId}/releases/{releaseId}/patches/{patchId}/rollforward',
    tag,
    summary: 'Take the rollback of a patch back: devices are offered it again',
    access: { by: 'bearer', permission: 'patch.write', on: 'app' },
    success: { status: 204, others: unchanged },
  }),
}
