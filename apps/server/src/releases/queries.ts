import type { ReleasePlatform, ReleaseStatus } from '@godwit/contract'
import { sql } from 'kysely'
import type { Db } from '../db/connection.ts'

type PlatformStatuses = Partial<Record<ReleasePlatform, ReleaseStatus>>

const columns = [
  'id',
  'app_id',
  'version',
  'flutter_revision',
  'flutter_version',
  'display_name',
  'notes',
  'created_at',
  'updated_at',
] as const

/** Releases of an app, newest first; the one, when asked for. */
export async function listReleases(db: Db, input: { appId: string; releaseId?: number }) {
  return await db
    .selectFrom('releases')
    .select(columns)
    .select(
      sql<PlatformStatuses>`coalesce((
        select jsonb_object_agg(platform, status) from release_platforms where release_id = releases.id
      ), '{}')`.as('platform_statuses'),
    )
    .where('app_id', '=', input.appId)
    .$if(input.releaseId !== undefined, (query) => query.where('id', '=', input.releaseId ?? 0))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute()
}

/** Only releases with an uploaded artifact that can be sideloaded, each with the statuses of just those platforms. */
export async function listSideloadableReleases(db: Db, input: { appId: string }) {
  return await db
    .selectFrom('releases')
    .select(columns)
    .select(
      sql<PlatformStatuses>`coalesce((
        select jsonb_object_agg(platform, status) from release_platforms
        where release_id = releases.id and platform in (
          select platform from release_artifacts
          where release_id = releases.id and can_sideload and uploaded_at is not null
        )
      ), '{}')`.as('platform_statuses'),
    )
    .where('app_id', '=', input.appId)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('release_artifacts')
          .select('release_artifacts.id')
          .whereRef('release_artifacts.release_id', '=', 'releases.id')
          .where('can_sideload', '=', true)
          .where('uploaded_at', 'is not', null),
      ),
    )
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute()
}

export async function insertRelease(
  db: Db,
  input: {
    appId: string
    version: string
    flutterRevision: string
    flutterVersion: string | null
    displayName: string | null
  },
) {
  return await db
    .insertInto('releases')
    .values({
      app_id: input.appId,
      version: input.version,
      flutter_revision: input.flutterRevision,
      flutter_version: input.flutterVersion,
      display_name: input.displayName,
    })
    .returning(columns)
    .executeTakeFirstOrThrow()
}

/** Locks the release, so that what is decided about its artifacts and patches is decided one at a time. */
export async function lockRelease(db: Db, input: { appId: string; releaseId: number }) {
  return await db
    .selectFrom('releases')
    .select(['id', 'version', 'notes', 'last_patch_number'])
    .where('app_id', '=', input.appId)
    .where('id', '=', input.releaseId)
    .forUpdate()
    .executeTakeFirst()
}

/** The same wherever it belongs. Whether it is there. */
export async function lockReleaseById(db: Db, input: { releaseId: number }): Promise<boolean> {
  const row = await db
    .selectFrom('releases')
    .select('id')
    .where('id', '=', input.releaseId)
    .forUpdate()
    .executeTakeFirst()
  return row !== undefined
}

export async function updateRelease(
  db: Db,
  input: { releaseId: number; notes: string | null | undefined },
): Promise<void> {
  await db
    .updateTable('releases')
    .set({ updated_at: sql<Date>`now()`, ...(input.notes === undefined ? {} : { notes: input.notes }) })
    .where('id', '=', input.releaseId)
    .execute()
}

export async function findReleasePlatform(db: Db, input: { releaseId: number; platform: ReleasePlatform }) {
  return await db
    .selectFrom('release_platforms')
    .select(['status', 'metadata'])
    .where('release_id', '=', input.releaseId)
    .where('platform', '=', input.platform)
    .executeTakeFirst()
}

/** Adds the platform, as a draft when no status is given, or changes what is given. Answers what it is then. */
export async function upsertReleasePlatform(
  db: Db,
  input: {
    releaseId: number
    platform: ReleasePlatform
    status: ReleaseStatus | undefined
    metadata: Record<string, unknown> | undefined
  },
) {
  const metadata = input.metadata === undefined ? null : JSON.stringify(input.metadata)
  return await db
    .insertInto('release_platforms')
    .values({ release_id: input.releaseId, platform: input.platform, status: input.status ?? 'draft', metadata })
    .onConflict((conflict) =>
      conflict.columns(['release_id', 'platform']).doUpdateSet((eb) => ({
        status: input.status ?? eb.ref('release_platforms.status'),
        metadata: sql`coalesce(excluded.metadata, release_platforms.metadata)`,
        updated_at: sql<Date>`now()`,
      })),
    )
    .returning(['status', 'metadata'])
    .executeTakeFirstOrThrow()
}

/** Which version it was; undefined when there was none. */
export async function deleteRelease(db: Db, input: { appId: string; releaseId: number }) {
  return await db
    .deleteFrom('releases')
    .where('app_id', '=', input.appId)
    .where('id', '=', input.releaseId)
    .returning('version')
    .executeTakeFirst()
}
