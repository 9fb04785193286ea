import type { ReleasePlatform } from '@godwit/contract'
import { sql } from 'kysely'
import type { AppFacts } from '../analyzer/app-facts.ts'
import type { Db } from '../db/connection.ts'
import { analyzedPlatforms } from './rules.ts'

export type ReleaseOnPlatform = { releaseId: number; platform: ReleasePlatform }

/** What was found, or why nothing was. */
export type Finding = { facts: AppFacts } | { problem: string; detail: string }

export async function findAnalysis(db: Db, input: ReleaseOnPlatform) {
  return await db
    .selectFrom('release_analyses')
    .select(['artifact_id', 'analyzer_version'])
    .where('release_id', '=', input.releaseId)
    .where('platform', '=', input.platform)
    .executeTakeFirst()
}

/** Replaces what was found before. Nothing happens when the artifact is gone. */
export async function upsertAnalysis(
  db: Db,
  input: ReleaseOnPlatform & { artifactId: number; analyzerVersion: number; analyzedAt: Date; finding: Finding },
): Promise<void> {
  const { finding } = input
  const facts = 'facts' in finding ? finding.facts : undefined
  const problem = 'facts' in finding ? undefined : finding
  const values = {
    artifact_id: input.artifactId,
    analyzer_version: input.analyzerVersion,
    is_analyzed: facts !== undefined,
    display_name: facts?.displayName ?? null,
    package_name: facts?.packageName ?? null,
    min_sdk_version: facts?.minSdkVersion ?? null,
    target_sdk_version: facts?.targetSdkVersion ?? null,
    architectures: facts?.architectures ?? null,
    icon: facts?.icon ?? null,
    problem: problem?.problem ?? null,
    detail: problem?.detail ?? null,
    analyzed_at: input.analyzedAt,
  }
  await db
    .insertInto('release_analyses')
    .values({ release_id: input.releaseId, platform: input.platform, ...values })
    .onConflict((conflict) => conflict.columns(['release_id', 'platform']).doUpdateSet(values))
    .execute()
}

/**
 * Releases with an artifact that can be analyzed, oldest first: those without any result, those whose result is of an
 * analyzer before `olderThan`, or all.
 */
export async function listToAnalyze(
  db: Db,
  input: { which: 'missing' | 'all' } | { which: 'outdated'; olderThan: number },
): Promise<ReleaseOnPlatform[]> {
  const rows = await db
    .selectFrom('release_artifacts as artifact')
    .leftJoin('release_analyses as analysis', (join) =>
      join
        .onRef('analysis.release_id', '=', 'artifact.release_id')
        .onRef('analysis.platform', '=', 'artifact.platform'),
    )
    .select(['artifact.release_id', 'artifact.platform'])
    .distinct()
    .where('artifact.uploaded_at', 'is not', null)
    .where((eb) =>
      eb.or(
        analyzedPlatforms.map(({ platform, arches }) =>
          eb.and([eb('artifact.platform', '=', platform), eb('artifact.arch', 'in', arches)]),
        ),
      ),
    )
    .$if(input.which !== 'all', (query) =>
      query.where((eb) => {
        const isMissing = eb('analysis.release_id', 'is', null)
        if (input.which !== 'outdated') return isMissing
        return eb.or([isMissing, eb('analysis.analyzer_version', '<', input.olderThan)])
      }),
    )
    .orderBy('artifact.release_id')
    .orderBy('artifact.platform')
    .execute()
  return rows.map(({ release_id, platform }) => ({ releaseId: release_id, platform }))
}

/** Per app and platform the newest release that has an uploaded artifact, and whether it is analyzed. */
export async function listNewestReleases(db: Db, input: { appIds: string[] }) {
  if (input.appIds.length === 0) return []
  return await db
    .selectFrom('releases')
    .innerJoin('release_artifacts as artifact', 'artifact.release_id', 'releases.id')
    .leftJoin('release_analyses as analysis', (join) =>
      join.onRef('analysis.release_id', '=', 'releases.id').onRef('analysis.platform', '=', 'artifact.platform'),
    )
    .distinctOn(['releases.app_id', 'artifact.platform'])
    .select(['releases.app_id', 'artifact.platform', 'releases.id', 'releases.version', 'releases.created_at'])
    .select(sql<boolean>`coalesce(analysis.is_analyzed, false)`.as('is_analyzed'))
    .where('releases.app_id', 'in', input.appIds)
    .where('artifact.uploaded_at', 'is not', null)
    .orderBy('releases.app_id')
    .orderBy('artifact.platform')
    .orderBy('releases.created_at', 'desc')
    .orderBy('releases.id', 'desc')
    .execute()
}

/** Per app and platform the newest release that is analyzed. */
export async function listNewestAnalyzed(db: Db, input: { appIds: string[] }) {
  if (input.appIds.length === 0) return []
  return await db
    .selectFrom('release_analyses as analysis')
    .innerJoin('releases', 'releases.id', 'analysis.release_id')
    .leftJoin('release_platforms', (join) =>
      join
        .onRef('release_platforms.release_id', '=', 'analysis.release_id')
        .onRef('release_platforms.platform', '=', 'analysis.platform'),
    )
    .distinctOn(['releases.app_id', 'analysis.platform'])
    .selectAll('releases')
    .select((eb) => [
      'analysis.platform',
      'analysis.display_name as analyzed_name',
      'analysis.package_name',
      'analysis.min_sdk_version',
      'analysis.target_sdk_version',
      'analysis.architectures',
      eb.fn.coalesce('release_platforms.status', sql.lit('draft' as const)).as('status'),
    ])
    .where('releases.app_id', 'in', input.appIds)
    .where('analysis.is_analyzed', '=', true)
    .orderBy('releases.app_id')
    .orderBy('analysis.platform')
    .orderBy('releases.created_at', 'desc')
    .orderBy('releases.id', 'desc')
    .execute()
}

/** Per app the release whose icon is the app's: the newest for iOS that has one, else the newest for Android. */
export async function listIconReleases(db: Db, input: { appIds: string[] }) {
  if (input.appIds.length === 0) return []
  return await db
    .selectFrom('release_analyses as analysis')
    .innerJoin('releases', 'releases.id', 'analysis.release_id')
    .distinctOn('releases.app_id')
    .select(['releases.app_id', 'releases.id', 'analysis.platform'])
    .where('releases.app_id', 'in', input.appIds)
    .where('analysis.platform', 'in', ['ios', 'android'])
    .where('analysis.icon', 'is not', null)
    .orderBy('releases.app_id')
    .orderBy('analysis.platform', 'desc')
    .orderBy('releases.created_at', 'desc')
    .orderBy('releases.id', 'desc')
    .execute()
}

export async function findIcon(db: Db, input: ReleaseOnPlatform): Promise<Buffer | undefined> {
  const row = await db
    .selectFrom('release_analyses')
    .select('icon')
    .where('release_id', '=', input.releaseId)
    .where('platform', '=', input.platform)
    .executeTakeFirst()
  return row?.icon ?? undefined
}
