import type { Release, ReleaseArtifact } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { bindRoute } from '../http/bind.ts'
import { chooseUploadMethod } from '../transfers/upload-method.ts'
import { createRelease, deleteRelease, getRelease, updateRelease } from './actions.ts'
import { deleteReleaseArtifacts, listReleaseArtifacts, registerReleaseArtifact } from './artifact-actions.ts'
import { listReleases, listSideloadableReleases } from './queries.ts'

export function registerReleaseRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listReleases', async ({ params, query }) => {
    const list = query.sideloadable === 'true' ? listSideloadableReleases : listReleases
    const rows = await list(deps.db, { appId: params.appId })
    return { releases: rows.map(toRelease) }
  })
  bindRoute(app, deps, 'createRelease', async ({ actor, params, body }) => {
    const row = await createRelease(deps, actor, {
      appId: params.appId,
      version: body.version,
      flutterRevision: body.flutter_revision,
      flutterVersion: body.flutter_version ?? null,
      displayName: body.display_name ?? null,
    })
    return { release: toRelease(row) }
  })
  bindRoute(app, deps, 'getRelease', async ({ params }) => ({ release: toRelease(await getRelease(deps, params)) }))
  bindRoute(app, deps, 'updateRelease', async ({ actor, params, body }) => {
    await updateRelease(deps, actor, {
      ...params,
      platform: body.platform ?? undefined,
      status: body.status ?? undefined,
      metadata: body.metadata ?? undefined,
      notes: body.notes,
    })
  })
  bindRoute(app, deps, 'deleteRelease', async ({ actor, params }) => {
    await deleteRelease(deps, actor, params)
  })
  registerArtifactRoutes(app, deps)
}

function registerArtifactRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listReleaseArtifacts', async ({ actor, params, query }) => {
    const rows = await listReleaseArtifacts(deps, actor, { ...params, arch: query.arch, platform: query.platform })
    return { artifacts: rows.map(toReleaseArtifact) }
  })
  bindRoute(app, deps, 'createReleaseArtifact', async ({ actor, params, body, request }) => {
    const { id, url } = await registerReleaseArtifact(deps, actor, {
      ...params,
      platform: body.platform,
      arch: body.arch,
      hash: body.hash,
      sizeBytes: body.size,
      filename: body.filename ?? null,
      podfileLockHash: body.podfile_lock_hash ?? null,
      canSideload: body.can_sideload,
    })
    const { arch, platform, hash, size } = body
    const upload_method = chooseUploadMethod(request.headers['x-cli-version']?.toString())
    return { id, release_id: params.releaseId, arch, platform, hash, size, url, upload_method }
  })
  bindRoute(app, deps, 'deleteReleaseArtifacts', async ({ actor, params, query }) => {
    await deleteReleaseArtifacts(deps, actor, { ...params, platform: query.platform })
  })
}

function toRelease(row: Awaited<ReturnType<typeof getRelease>>): Release {
  return {
    id: row.id,
    app_id: row.app_id,
    version: row.version,
    flutter_revision: row.flutter_revision,
    flutter_version: row.flutter_version ?? undefined,
    display_name: row.display_name ?? undefined,
    platform_statuses: row.platform_statuses,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    notes: row.notes ?? undefined,
  }
}

function toReleaseArtifact(row: Awaited<ReturnType<typeof listReleaseArtifacts>>[number]): ReleaseArtifact {
  return {
    id: row.id,
    release_id: row.release_id,
    arch: row.arch,
    platform: row.platform,
    hash: row.hash,
    size: row.size_bytes,
    url: row.url,
    podfile_lock_hash: row.podfile_lock_hash ?? undefined,
    can_sideload: row.can_sideload,
  }
}
