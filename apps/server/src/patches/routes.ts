import type { PatchArtifact, ReleasePatch } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { bindRoute } from '../http/bind.ts'
import { chooseUploadMethod } from '../transfers/upload-method.ts'
import {
  createPatch,
  listReleasePatches,
  promotePatch,
  registerPatchArtifact,
  setPatchRolledBack,
  updatePatch,
} from './actions.ts'

export function registerPatchRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listReleasePatches', async ({ params }) => {
    const rows = await listReleasePatches(deps, params)
    return { patches: rows.map(toReleasePatch) }
  })
  bindRoute(app, deps, 'createPatch', async ({ actor, params, body }) => {
    const row = await createPatch(deps, actor, {
      appId: params.appId,
      releaseId: body.release_id,
      clientPatchId: body.client_patch_id ?? null,
      metadata: body.metadata ?? null,
    })
    return {
      id: row.id,
      number: row.number,
      notes: row.notes ?? undefined,
      client_patch_id: row.client_patch_id ?? undefined,
      channel: row.channel ?? undefined,
    }
  })
  bindRoute(app, deps, 'updatePatch', async ({ actor, params, body }) => {
    await updatePatch(deps, actor, { ...params, notes: body.notes })
  })
  bindRoute(app, deps, 'createPatchArtifact', async ({ actor, params, body, request }) => {
    const { id, url } = await registerPatchArtifact(deps, actor, {
      ...params,
      platform: body.platform,
      arch: body.arch,
      hash: body.hash,
      hashSignature: body.hash_signature ?? null,
      sizeBytes: body.size,
      podfileLockHash: body.podfile_lock_hash ?? null,
    })
    const { arch, platform, hash, size } = body
    const upload_method = chooseUploadMethod(request.headers['x-cli-version']?.toString())
    return { id, patch_id: params.patchId, arch, platform, hash, size, url, upload_method }
  })
  bindRoute(app, deps, 'promotePatch', async ({ actor, params, body }) => {
    await promotePatch(deps, actor, { appId: params.appId, patchId: body.patch_id, channelId: body.channel_id })
  })
  bindRoute(app, deps, 'rollBackPatch', async ({ actor, params, reply }) => {
    if (!(await setPatchRolledBack(deps, actor, { ...params, isRolledBack: true }))) reply.code(304)
  })
  bindRoute(app, deps, 'rollForwardPatch', async ({ actor, params, reply }) => {
    if (!(await setPatchRolledBack(deps, actor, { ...params, isRolledBack: false }))) reply.code(304)
  })
}

type ReleasePatchRow = Awaited<ReturnType<typeof listReleasePatches>>[number]

function toReleasePatch(row: ReleasePatchRow): ReleasePatch {
  return {
    id: row.id,
    number: row.number,
    channel: row.channel ?? undefined,
    artifacts: row.artifacts.map(toPatchArtifact),
    is_rolled_back: row.is_rolled_back,
    notes: row.notes ?? undefined,
  }
}

function toPatchArtifact(row: ReleasePatchRow['artifacts'][number]): PatchArtifact {
  return {
    id: row.id,
    patch_id: row.patch_id,
    arch: row.arch,
    platform: row.platform,
    hash: row.hash,
    size: row.size_bytes,
    created_at: row.created_at.toISOString(),
  }
}
