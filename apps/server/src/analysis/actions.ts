import type { ReleasePlatform } from '@godwit/contract'
import type { AnalysisOutcome } from '../analyzer/read-answer.ts'
import type { Deps } from '../deps.ts'
import { listReleaseArtifacts } from '../releases/artifact-queries.ts'
import { lockReleaseById } from '../releases/queries.ts'
import { openBlobSource } from './blob-source.ts'
import { type Finding, findAnalysis, listToAnalyze, type ReleaseOnPlatform, upsertAnalysis } from './queries.ts'
import { choosePrimaryArtifact } from './rules.ts'

/**
 * Counts up with every change by which the analyzer finds more, or something else: what an older one found can then be
 * found again (`npm run admin -- analyze`).
 */
export const analyzerVersion = 1

/**
 * Analyzes the primary artifact of a release on a platform, unless that has been done. Rejects when the fault is ours, and
 * may be tried again.
 */
export async function analyzeRelease(
  deps: Pick<Deps, 'db' | 'blobs' | 'analyzer' | 'clock' | 'log'>,
  input: ReleaseOnPlatform & { again?: boolean },
): Promise<void> {
  const { releaseId, platform } = input
  const artifact = choosePrimaryArtifact(platform, await listReleaseArtifacts(deps.db, input))
  if (artifact === undefined) return
  const known = await findAnalysis(deps.db, input)
  const isDone = known?.artifact_id === artifact.id && known.analyzer_version === analyzerVersion
  if (isDone && input.again !== true) return
  const source = await openBlobSource(deps.blobs, artifact.blob_key)
  if (source === undefined) throw new Error(`release ${releaseId} for ${platform}: its bytes are not there`)
  const outcome = await deps.analyzer.analyze(source)
  if (outcome.kind === 'failed') throw new Error(`release ${releaseId} for ${platform}: ${outcome.reason}`)
  const finding = toFinding(outcome, platform)
  await storeFinding(deps, { releaseId, platform, artifactId: artifact.id, finding })
  if ('problem' in finding) {
    deps.log.warn({ releaseId, platform, artifactId: artifact.id, ...finding }, 'a release cannot be analyzed')
  }
}

function toFinding(outcome: Exclude<AnalysisOutcome, { kind: 'failed' }>, platform: ReleasePlatform): Finding {
  if (outcome.kind === 'unanalyzable') return { problem: outcome.problem, detail: outcome.detail }
  const { facts } = outcome
  if (facts.platform === platform) return { facts }
  return { problem: 'unknown_format', detail: `an app for ${facts.platform}, not for ${platform}` }
}

/** An artifact that has been replaced or deleted meanwhile has its own request. */
async function storeFinding(
  deps: Pick<Deps, 'db' | 'clock'>,
  input: ReleaseOnPlatform & { artifactId: number; finding: Finding },
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    if (!(await lockReleaseById(trx, input))) return
    const artifact = choosePrimaryArtifact(input.platform, await listReleaseArtifacts(trx, input))
    if (artifact?.id !== input.artifactId) return
    await upsertAnalysis(trx, { ...input, analyzerVersion, analyzedAt: deps.clock() })
  })
}

/** Has releases analyzed that have no result, or an outdated one, or all of them. Answers how many. */
export async function requestAnalyses(
  deps: Pick<Deps, 'db' | 'jobs'>,
  input: { which: 'missing' | 'outdated' | 'all' },
): Promise<number> {
  const { which } = input
  const releases = await listToAnalyze(
    deps.db,
    which === 'outdated' ? { which, olderThan: analyzerVersion } : { which },
  )
  await deps.jobs.requestAnalyses(
    deps.db,
    releases.map((release) => ({ ...release, again: which === 'all' })),
  )
  return releases.length
}
