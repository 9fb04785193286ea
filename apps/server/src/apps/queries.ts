import { sql } from 'kysely'
import { listIconReleases, listNewestAnalyzed, listNewestReleases } from '../analysis/queries.ts'
import type { Db } from '../db/connection.ts'
import type { Actor } from '../http/actor.ts'

export async function insertApp(db: Db, input: { id: string; organizationId: number; displayName: string }) {
  return await db
    .insertInto('apps')
    .values({ id: input.id, organization_id: input.organizationId, display_name: input.displayName })
    .returning(['id', 'display_name'])
    .executeTakeFirstOrThrow()
}

export async function findOrganizationIdOfApp(db: Db, input: { appId: string }): Promise<number | undefined> {
  const row = await db.selectFrom('apps').select('organization_id').where('id', '=', input.appId).executeTakeFirst()
  return row?.organization_id
}

export async function listAppIds(db: Db, input: { organizationId: number }): Promise<string[]> {
  const rows = await db
    .selectFrom('apps')
    .select('id')
    .where('organization_id', '=', input.organizationId)
    .orderBy('id')
    .execute()
  return rows.map(({ id }) => id)
}

/** Locks an app, so that what it is called and whether it is there is decided by one at a time. */
export async function lockApp(db: Db, input: { appId: string }) {
  return await db.selectFrom('apps').select('display_name').where('id', '=', input.appId).forUpdate().executeTakeFirst()
}

/** Keeps an app of an organization until the commit. Whether it is there. */
export async function lockAppAgainstDeletion(
  db: Db,
  input: { appId: string; organizationId: number },
): Promise<boolean> {
  const row = await db
    .selectFrom('apps')
    .select('id')
    .where('id', '=', input.appId)
    .where('organization_id', '=', input.organizationId)
    .forKeyShare()
    .executeTakeFirst()
  return row !== undefined
}

export async function updateOrganizationOfApp(
  db: Db,
  input: { appId: string; organizationId: number; at: Date },
): Promise<{ display_name: string }> {
  return await db
    .updateTable('apps')
    .set({ organization_id: input.organizationId, updated_at: input.at })
    .where('id', '=', input.appId)
    .returning('display_name')
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

/** The apps that a caller may see, oldest first; of one organization, or the one app, when asked for. */
export async function listAppMetadata(db: Db, input: { actor: Actor; organizationId?: number; appId?: string }) {
  const { actor, organizationId, appId } = input
  if (actor.kind === 'newcomer') return []
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
    .innerJoin('organizations', 'organizations.id', 'apps.organization_id')
    .selectAll('apps')
    .select(['latest.version as latest_release_version', 'latest.last_patch_number as latest_patch_number'])
    .where('organizations.deletion_started_at', 'is', null)
    .where((eb) => {
      if (actor.kind === 'service_account') return eb('apps.organization_id', '=', actor.organizationId)
      const membership = eb
        .selectFrom('organization_members')
        .select('role')
        .whereRef('organization_members.organization_id', '=', 'apps.organization_id')
        .where('organization_members.user_id', '=', actor.userId)
      const collaboration = eb
        .selectFrom('app_collaborators')
        .select('role')
        .whereRef('app_collaborators.app_id', '=', 'apps.id')
        .where('app_collaborators.user_id', '=', actor.userId)
      return eb.or([eb.exists(membership), eb.exists(collaboration)])
    })
    .$if(organizationId !== undefined, (query) => query.where('apps.organization_id', '=', organizationId ?? 0))
    .$if(appId !== undefined, (query) => query.where('apps.id', '=', appId ?? ''))
    .orderBy('apps.created_at')
    .orderBy('apps.id')
    .execute()
  const appIds = apps.map(({ id }) => id)
  const [newest, analyzed, icons] = await Promise.all([
    listNewestReleases(db, { appIds }),
    listNewestAnalyzed(db, { appIds }),
    listIconReleases(db, { appIds }),
  ])
  const newestOfApp = Map.groupBy(newest, ({ app_id }) => app_id)
  const analyzedOfApp = Map.groupBy(analyzed, ({ app_id }) => app_id)
  const iconOfApp = new Map(icons.map(({ app_id, id }) => [app_id, id]))
  return apps.map((app) => ({
    ...app,
    newestReleases: newestOfApp.get(app.id) ?? [],
    analyzedReleases: analyzedOfApp.get(app.id) ?? [],
    iconReleaseId: iconOfApp.get(app.id),
  }))
}
