import { Readable } from 'node:stream'
import type { AppMetadata, LatestRelease } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import { findIcon, listIconReleases } from '../analysis/queries.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { bindRoute } from '../http/bind.ts'
import { createApp, deleteApp, updateApp } from './actions.ts'
import { listAppMetadata } from './queries.ts'

/** Its URL names the release that it is of, and so the icon behind one URL never changes. */
const iconCacheControl = 'private, max-age=31536000, immutable'

export function registerAppRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listApps', async ({ actor }) => {
    const rows = await listAppMetadata(deps.db, { actor })
    return { apps: rows.map((row) => toAppMetadata(deps, row)) }
  })
  bindRoute(app, deps, 'createApp', async ({ actor, body }) =>
    createApp(deps, actor, { organizationId: body.organization_id, displayName: body.display_name }),
  )
  bindRoute(app, deps, 'getApp', async ({ actor, params }) => {
    const [row] = await listAppMetadata(deps.db, { actor, appId: params.appId })
    if (row === undefined) throw new AppError('not_found')
    return toAppMetadata(deps, row)
  })
  bindRoute(app, deps, 'getAppIcon', async ({ params, reply }) => {
    const [release] = await listIconReleases(deps.db, { appIds: [params.appId] })
    const icon = release && (await findIcon(deps.db, { releaseId: release.id, platform: release.platform }))
    if (icon === undefined) throw new AppError('not_found')
    reply.type('image/png').header('cache-control', iconCacheControl).header('content-length', icon.length)
    return Readable.from([icon])
  })
  bindRoute(app, deps, 'updateApp', async ({ actor, params, body }) => {
    await updateApp(deps, actor, { appId: params.appId, displayName: body.display_name })
  })
  bindRoute(app, deps, 'deleteApp', async ({ actor, params }) => {
    await deleteApp(deps, actor, { appId: params.appId })
  })
}

type AppRow = Awaited<ReturnType<typeof listAppMetadata>>[number]

export function toAppMetadata(deps: Pick<Deps, 'config'>, row: AppRow): AppMetadata {
  const pending = row.newestReleases.filter(({ is_analyzed }) => !is_analyzed)
  return {
    app_id: row.id,
    display_name: row.display_name,
    latest_release_version: row.latest_release_version ?? undefined,
    latest_patch_number: row.latest_patch_number || undefined,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    platforms: row.newestReleases.map(({ platform }) => platform),
    latest_releases: Object.fromEntries(row.analyzedReleases.map((each) => [each.platform, toLatestRelease(each)])),
    pending_releases: Object.fromEntries(
      pending.map(({ platform, id, version, created_at }) => [
        platform,
        { id, version, created_at: created_at.toISOString() },
      ]),
    ),
    icon_url:
      row.iconReleaseId === undefined
        ? undefined
        : `${deps.config.publicUrl}/api/v1/apps/${encodeURIComponent(row.id)}/icon?v=${row.iconReleaseId}`,
  }
}

function toLatestRelease(row: AppRow['analyzedReleases'][number]): LatestRelease {
  return {
    id: row.id,
    version: row.version,
    flutter_revision: row.flutter_revision,
    flutter_version: row.flutter_version ?? undefined,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    status: row.status,
    notes: row.notes ?? undefined,
    analysis: {
      display_name: row.analyzed_name ?? '',
      package_name: row.package_name ?? '',
      min_sdk_version: row.min_sdk_version ?? '',
      target_sdk_version: row.target_sdk_version ?? '',
      architectures: row.architectures ?? [],
    },
  }
}
