import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { analyzeRelease, analyzerVersion, requestAnalyses } from '../../src/analysis/actions.ts'
import type { JobHandlers } from '../../src/jobs/jobs.ts'
import { createTestApp, createTestRelease, uploadTestReleaseArtifact } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { readRealArchive, releaseAndAnalyze } from './releases.ts'

const logged: { level: number; msg: string; [name: string]: unknown }[] = []
const log = pino({ level: 'info' }, { write: (line: string) => void logged.push(JSON.parse(line)) })

let service: TestService
let owner: TestAccount
let appId: string
let aab: Buffer

beforeAll(async () => {
  service = await createTestService({ log })
  owner = await service.createAccount()
  aab = await readRealArchive('aab-basic.aab')
})
afterAll(() => service.stop())
beforeEach(async () => {
  appId = await createTestApp(owner)
})

async function uploadRelease(version = '1.0.0', bytes = aab): Promise<{ releaseId: number; artifactId: number }> {
  const releaseId = await createTestRelease(owner.api, appId, version)
  const { artifact } = await uploadTestReleaseArtifact(owner.api, { appId, releaseId }, { bytes })
  return { releaseId, artifactId: artifact.id }
}

async function findRow(releaseId: number) {
  return await service.deps.db
    .selectFrom('release_analyses')
    .selectAll()
    .where('release_id', '=', releaseId)
    .executeTakeFirst()
}

describe('analyzeRelease', () => {
  it('tells the operator why an archive says nothing, and nobody else', async () => {
    const bytes = Buffer.from('no archive')
    const releaseId = await releaseAndAnalyze(service, owner, {
      ...{ appId, version: '1.0.0', platform: 'android', arch: 'aab', bytes },
    })
    expect(await findRow(releaseId)).toMatchObject({ is_analyzed: false, problem: 'damaged_archive', icon: null })
    expect(logged.findLast(({ msg }) => msg === 'a release cannot be analyzed')).toMatchObject({
      level: 40,
      releaseId,
      platform: 'android',
      problem: 'damaged_archive',
      detail: expect.any(String),
    })
    const answer = await owner.api.getRelease({ params: { appId, releaseId } })
    expect(JSON.stringify(answer)).not.toMatch(/damaged|analy/)
  })

  it('leaves the release usable whatever the archive is', async () => {
    const { releaseId } = await uploadRelease('1.0.0', Buffer.from('no archive'))
    await analyzeRelease(service.deps, { releaseId, platform: 'android' })
    const params = { appId, releaseId }
    await owner.api.updateRelease({ params, body: { status: 'active', platform: 'android' } })
    expect((await owner.api.getRelease({ params })).release.platform_statuses).toEqual({ android: 'active' })
    const { artifacts } = await owner.api.listReleaseArtifacts({ params, query: {} })
    expect(await (await fetch(artifacts[0]?.url ?? '')).text()).toBe('no archive')
  })

  it('reads an archive once, until it is asked to read it again', async () => {
    const { releaseId } = await uploadRelease()
    const input = { releaseId, platform: 'android' } as const
    const count = () => service.deps.analyzer.measure().done.analyzed
    const before = count()
    await analyzeRelease(service.deps, input)
    await analyzeRelease(service.deps, input)
    expect(count()).toBe(before + 1)
    await analyzeRelease(service.deps, { ...input, again: true })
    expect(count()).toBe(before + 2)
    await service.deps.db.updateTable('release_analyses').set({ analyzer_version: 0 }).execute()
    await analyzeRelease(service.deps, input)
    expect(count()).toBe(before + 3)
    expect(await findRow(releaseId)).toMatchObject({ analyzer_version: analyzerVersion, is_analyzed: true })
  })

  it('fails, to be tried again, when the bytes cannot be read, and keeps what was known', async () => {
    const { releaseId } = await uploadRelease()
    const input = { releaseId, platform: 'android' } as const
    await analyzeRelease(service.deps, input)
    const known = await findRow(releaseId)
    const blobs = join(service.dataDir, 'blobs')
    for (const name of (await readdir(blobs)).filter((each) => !each.startsWith('.'))) {
      await rm(join(blobs, name), { recursive: true })
    }
    await expect(analyzeRelease(service.deps, { ...input, again: true })).rejects.toThrow(/release \d+ for android/)
    expect(await findRow(releaseId)).toEqual(known)
    await service.restart()
  })

  it('drops what it found of an artifact that was deleted meanwhile', async () => {
    const { releaseId } = await uploadRelease()
    const { deps } = service
    const analyzer = {
      ...deps.analyzer,
      analyze: async (...input: Parameters<typeof deps.analyzer.analyze>) => {
        const outcome = await deps.analyzer.analyze(...input)
        await owner.api.deleteReleaseArtifacts({ params: { appId, releaseId }, query: {} })
        return outcome
      },
    }
    await analyzeRelease({ ...deps, analyzer }, { releaseId, platform: 'android' })
    expect(await findRow(releaseId)).toBeUndefined()
  })
})

describe('requests', () => {
  const doNothing = async () => undefined

  /** The jobs of the service as they run, for as long as a test. */
  async function work(handlers: Partial<JobHandlers>): Promise<void> {
    const nothing = {
      sweepBlobs: doNothing,
      removeDeviceEvents: doNothing,
      removeOrganization: doNothing,
      resumeRemovals: doNothing,
      sendMail: doNothing,
      maintain: doNothing,
      requestMissingAnalyses: doNothing,
      analyzeRelease: doNothing,
    }
    await service.deps.jobs.work({ ...nothing, ...handlers })
  }

  it('follow an upload, and are answered within seconds', async () => {
    await work({ analyzeRelease: (input) => analyzeRelease(service.deps, input) })
    const { releaseId } = await uploadRelease()
    await expect.poll(() => findRow(releaseId), { timeout: 10_000 }).toMatchObject({ is_analyzed: true })
    const metrics = await (await fetch(`${service.baseUrl}/metrics`)).text()
    expect(metrics).toMatch(/godwit_analyses_total\{outcome="analyzed"\} [1-9]/)
    expect(metrics).toMatch(/godwit_analyses_running 0/)
    expect(metrics).toMatch(/godwit_jobs\{queue="analyze-release",state="waiting"\} \d+/)
    await service.restart()
  })

  it('are made for what has no result, for what is outdated, or for all', async () => {
    await service.deps.db.deleteFrom('apps').execute()
    appId = await createTestApp(owner)
    const done = await releaseAndAnalyze(service, owner, {
      ...{ appId, version: '1.0.0', platform: 'android', arch: 'aab', bytes: aab },
    })
    await uploadRelease('2.0.0')
    const request = (which: 'missing' | 'outdated' | 'all') => requestAnalyses(service.deps, { which })
    expect(await request('missing')).toBe(1)
    expect(await request('outdated')).toBe(1)
    expect(await request('all')).toBe(2)
    await service.deps.db
      .updateTable('release_analyses')
      .set({ analyzer_version: 0 })
      .where('release_id', '=', done)
      .execute()
    expect(await request('missing')).toBe(1)
    expect(await request('outdated')).toBe(2)
    const counts = await service.deps.jobs.count()
    expect(counts.find(({ queue }) => queue === 'analyze-release')?.waiting).toBeGreaterThan(0)
  })
})
