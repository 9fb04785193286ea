import type { ReleasePlatform } from '@godwit/contract'
import { sql } from 'kysely'
import type { Span } from '../activity/activity-store.ts'
import type { Db } from '../db/connection.ts'
import type { EventCount } from './rules.ts'

export async function findNewestRelease(db: Db, input: { appId: string }) {
  return await db
    .selectFrom('releases')
    .select(['id', 'version'])
    .where('app_id', '=', input.appId)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
}

export async function findReleaseByVersion(db: Db, input: { appId: string; version: string }) {
  return await db
    .selectFrom('releases')
    .select(['id', 'version'])
    .where('app_id', '=', input.appId)
    .where('version', '=', input.version)
    .executeTakeFirst()
}

export async function findReleaseVersion(
  db: Db,
  input: { appId: string; releaseId: number },
): Promise<string | undefined> {
  const row = await db
    .selectFrom('releases')
    .select('version')
    .where('app_id', '=', input.appId)
    .where('id', '=', input.releaseId)
    .executeTakeFirst()
  return row?.version
}

/** Patches of a release by number, with the platforms that each was built for, uploaded or not. */
export async function listPatchTargets(db: Db, input: { releaseId: number }) {
  return await db
    .selectFrom('patches')
    .select(['number', 'is_rolled_back'])
    .select(
      sql<ReleasePlatform[]>`array(
        select distinct platform from patch_artifacts where patch_id = patches.id order by platform
      )`.as('platforms'),
    )
    .where('release_id', '=', input.releaseId)
    .orderBy('number')
    .execute()
}

/** As updaters name what the metrics count. */
export type PatchEventType = '__patch_install__' | '__patch_download__'

/** Events of a type that were received in a time, by bucket and by what they are grouped by. */
export async function countEvents(
  db: Db,
  input: {
    appId: string
    type: PatchEventType
    span: Span
    /** Where the buckets begin, in order (Unix ms). None: all in one. */
    bucketsFromMs: number[]
    releaseVersion?: string | undefined
    groupBy?: 'release' | 'patch' | undefined
  },
): Promise<EventCount[]> {
  const { span, bucketsFromMs, releaseVersion, groupBy } = input
  const starts = (bucketsFromMs.length === 0 ? [span.fromMs] : bucketsFromMs).map((ms) => new Date(ms))
  const values = {
    release: sql<string | null>`counts.release_version`,
    patch: sql<string | null>`counts.patch_number::text`,
    none: sql<string | null>`null::text`,
  }
  return await db
    .selectFrom('activity_event_counts as counts')
    .innerJoin('activity_apps as app', 'app.id', 'counts.app')
    .select([
      sql<number>`width_bucket(counts.start, ${starts}::timestamptz[]) - 1`.as('bucket'),
      values[groupBy ?? 'none'].as('value'),
      sql<number>`sum(counts.count)::bigint`.as('count'),
    ])
    .where('app.app_id', '=', input.appId)
    .where('counts.type', '=', input.type)
    .where('counts.start', '>=', new Date(span.fromMs))
    .where('counts.start', '<', new Date(span.toMs))
    .$if(releaseVersion !== undefined, (query) => query.where('counts.release_version', '=', releaseVersion ?? ''))
    .groupBy(sql`1, 2`)
    .execute()
}
