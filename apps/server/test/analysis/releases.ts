import { readFile } from 'node:fs/promises'
import type { ReleasePlatform } from '@godwit/contract'
import { analyzeRelease } from '../../src/analysis/actions.ts'
import { createTestRelease, uploadTestReleaseArtifact } from '../support/publishing.ts'
import type { TestAccount, TestService } from '../support/test-service.ts'

export async function readRealArchive(name: string): Promise<Buffer> {
  return await readFile(new URL(`../analyzer/fixtures/real/${name}`, import.meta.url))
}

/** A release with one artifact, analyzed as the job would. Returns its id. */
export async function releaseAndAnalyze(
  service: TestService,
  owner: TestAccount,
  input: { appId: string; version: string; platform: ReleasePlatform; arch: string; bytes?: Buffer },
): Promise<number> {
  const { appId, version, platform, ...artifact } = input
  const { releases } = await owner.api.listReleases({ params: { appId } })
  const known = releases.find((release) => release.version === version)
  const releaseId = known?.id ?? (await createTestRelease(owner.api, appId, version))
  await owner.api.updateRelease({ params: { appId, releaseId }, body: { status: 'draft', platform } })
  await uploadTestReleaseArtifact(owner.api, { appId, releaseId }, { platform, ...artifact })
  await analyzeRelease(service.deps, { releaseId, platform })
  return releaseId
}
