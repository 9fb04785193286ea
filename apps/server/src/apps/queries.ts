import type { ReleasePlatform } from '@godwit/contract'
import { sql } from 'kysely'
import type { Db } from '../db/connection.ts'

export async function insertApp(db: Db, input: { id: string; organizationId: number; displayName: string }) {
  return await db
    .insertInto('apps')
    .values({ id: input.id, organization_id: input.organizationId, display_name: input.displayName })
    .returning(['id', 'display_name'])
    .executeTakeFirstOrThrow()
}

export async function updateApp(db: Db, input: { appId: string; displayName: string }): Promise<void> {
  await db
    .updateTable('apps')
    .set({ display_name: input.displayName, updated_at: sql<Date>`now()` })
    .where('id', '=', input.appId)
    .execute()
}

export async function deleteApp(db: Db, input: { appId: string }): Promise<void> {
  await db.deleteFrom('apps').where('id', '=', input.appId).execute()
}

export type PendingReleaseRow = { platform: ReleasePlatform; id: number; version: string; created_at: Date }

/** The apps that a user may see, oldest first; of one organization, or the one app, when asked for. */
export async function listAppMetadata(
  db: Db,
  input: { userId: number | undefined; organizationId?: number; appId?: string },
) {
  const { userId, organizationId, appId } = input
  if (userId === undefined) return []
  const apps = await db
    .selectFrom('apps')
    .leftJoinLateral(
      (eb) =>
        eb
          .selectFrom('releases')
          .select(['version', 'last_patch_number'])
          .whereRef('releases.app_id', '=', 'apps.id')
          .orderBy('created_at', 'desc')
          .orderBy('id', 'desc')
          .limit(1)
          .as('latest'),
      (join) => join.onTrue(),
    )
    .selectAll('apps')
    .select(['latest.version as latest_release_version', 'latest.last_patch_number as latest_patch_number'])
    .where((eb) =>
      eb.or([
        eb.exists(
          eb
            .selectFrom('organization_members')
            .select('role')
            .whereRef('organization_members.organization_id', '=', 'apps.organization_id')
            .where('organization_members.user_id', '=', userId),
        ),
        eb.exists(
          eb
            .selectFrom('app_collaborators')
            .select('role')
            .whereRef('app_collaborators.app_id', '=', 'apps.id')
            .where('app_collaborators.user_id', '=', userId),
        ),
      ]),
    )
    .$if(organizationId !== undefined, (query) => query.where('apps.organization_id', '=', organizationId ?? 0))
    .$if(appId !== undefined, (query) => query.where('apps.id', '=', appId ?? ''))
    .orderBy('apps.created_at')
    .orderBy('apps.id')
    .execute()
  const pending = await listPendingReleases(db, { appIds: apps.map(({ id }) => id) })
  return apps.map((app) => ({ ...app, pendingReleases: pending.get(app.id) ?? [] }))
}

/** Per app and platform the newest release that has an uploaded artifact. No release is analyzed yet. */
async function listPendingReleases(db: Db, input: { appIds: string[] }): Promise<Map<string, PendingReleaseRow[]>> {
  if (input.appIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('releases')
    .innerJoin('release_artifacts as artifact', 'artifact.release_id', 'releases.id')
    .distinctOn(['releases.app_id', 'artifact.platform'])
    .select(['releases.app_id', 'artifact.platform', 'releases.id', 'releases.version', 'releases.created_at'])
    .where('releases.app_id', 'in', input.appIds)
    .where('artifact.uploaded_at', 'is not', null)
    .orderBy('releases.app_id')
    .orderBy('artifact.platform')
    .orderBy('releases.created_at', 'desc')
    .orderBy('releases.id', 'desc')
    .execute()
  return Map.groupBy(rows, ({ app_id }) => app_id)
}
