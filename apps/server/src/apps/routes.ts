import type { AppMetadata } from '@godwit/contract'
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { bindRoute } from '../http/bind.ts'
import { createApp, deleteApp, updateApp } from './actions.ts'
import { listAppMetadata } from './queries.ts'

export function registerAppRoutes(app: FastifyInstance, deps: Deps): void {
  bindRoute(app, deps, 'listApps', async ({ actor }) => {
    const rows = await listAppMetadata(deps.db, { actor })
    return { apps: rows.map(toAppMetadata) }
  })
  bindRoute(app, deps, 'createApp', async ({ actor, body }) =>
    createApp(deps, actor, { organizationId: body.organization_id, displayName: body.display_name }),
  )
  bindRoute(app, deps, 'getApp', async ({ actor, params }) => {
    const [row] = await listAppMetadata(deps.db, { actor, appId: params.appId })
    if (row === undefined) throw new AppError('not_found')
    return toAppMetadata(row)
  })
  bindRoute(app, deps, 'updateApp', async ({ actor, params, body }) => {
    await updateApp(deps, actor, { appId: params.appId, displayName: body.display_name })
  })
  bindRoute(app, deps, 'deleteApp', async ({ actor, params }) => {
    await deleteApp(deps, actor, { appId: params.appId })
  })
}

type AppRow = Awaited<ReturnType<typeof listAppMetadata>>[number]

export function toAppMetadata(row: AppRow): AppMetadata {
  const platforms = row.pendingReleases.map(({ platform }) => platform)
  return {
    app_id: row.id,
    display_name: row.display_name,
    latest_release_version: row.latest_release_version ?? undefined,
    latest_patch_number: row.latest_patch_number || undefined,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    platforms,
    pending_releases: Object.fromEntries(
      row.pendingReleases.map(({ platform, id, version, created_at }) => [
        platform,
        { id, version, created_at: created_at.toISOString() },
      ]),
    ),
  }
}
