import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildArray, buildObjects, buildText } from '../analyzer/apple/build-plists.ts'
import type { Piece, ZipInput } from '../analyzer/core/build-zip.ts'
import { buildZip } from '../analyzer/core/build-zip.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { readRealArchive, releaseAndAnalyze } from './releases.ts'

/** Between two answers while an archive is analyzed, on a machine that has other work as well (ms). */
const longestWaitMs = 2000

let service: TestService
let owner: TestAccount
let appId: string

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
  appId = await createTestApp(owner)
})
afterAll(() => service.stop())

function toBytes(pieces: Piece[]): Buffer {
  return Buffer.concat(pieces.map((piece) => (Buffer.isBuffer(piece) ? piece : Buffer.alloc(piece.sizeBytes))))
}

/** Thirty lists, each of which has the next one twice: a thousand million for whoever follows them. */
function buildDoublingPlist(): Buffer {
  const lists = Array.from({ length: 30 }, (_, index) => buildArray([index + 1, index + 1]))
  return buildObjects([...lists, buildText('x')])
}

const attacks: Record<string, () => ZipInput[]> = {
  'a list of 190,000 entries': () => Array.from({ length: 190_000 }, (_, index) => ({ name: `f${index}` })),
  'a manifest of zeros, a thousand times its size': () => [
    { name: 'base/manifest/AndroidManifest.xml', content: Buffer.alloc(4 * 1024 ** 2) },
  ],
  'a property list that doubles thirty times': () => [
    { name: 'Payload/A.app/Info.plist', content: buildDoublingPlist() },
  ],
}

describe('an archive that is made to do harm', () => {
  it.each(Object.keys(attacks))('with %s costs nobody else anything', async (name) => {
    const bytes = toBytes(buildZip(attacks[name]?.() ?? [], { zip64: true }))
    const platform = name.includes('property') ? ('ios' as const) : ('android' as const)
    const artifact = { appId, version: name, platform, arch: platform === 'ios' ? 'ipa' : 'aab', bytes }
    const analyzing = releaseAndAnalyze(service, owner, artifact)
    let isOver = false
    const ending = analyzing.finally(() => {
      isOver = true
    })
    const waitsMs: number[] = []
    while (!isOver) {
      const askedAt = performance.now()
      await service.client().checkPatch({
        body: { app_id: appId, channel: 'stable', release_version: '1', platform: 'android', arch: 'aarch64' },
      })
      waitsMs.push(performance.now() - askedAt)
    }
    const releaseId = await ending
    expect(Math.max(...waitsMs)).toBeLessThan(longestWaitMs)
    const found = await service.deps.db
      .selectFrom('release_analyses')
      .select(['is_analyzed', 'problem'])
      .where('release_id', '=', releaseId)
      .executeTakeFirst()
    expect(found).toEqual({ is_analyzed: false, problem: expect.any(String) })
  })

  it('does not keep the next one from being analyzed', async () => {
    const bytes = await readRealArchive('aab-basic.aab')
    const version = '9.0.0'
    await releaseAndAnalyze(service, owner, { appId, version, platform: 'android', arch: 'aab', bytes })
    expect((await owner.api.getApp({ params: { appId } })).latest_releases?.android).toMatchObject({ version })
  })
})
