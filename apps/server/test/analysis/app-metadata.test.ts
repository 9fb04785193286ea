import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { analyzeRelease } from '../../src/analysis/actions.ts'
import { createTestApp, createTestRelease, uploadTestReleaseArtifact } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { readRealArchive, releaseAndAnalyze } from './releases.ts'

const aabAnalysis = {
  display_name: 'Atlas Notes',
  package_name: 'com.example.atlas',
  min_sdk_version: '21',
  target_sdk_version: '34',
  architectures: ['arm64-v8a', 'armeabi-v7a', 'x86_64'],
}
const iosAnalysis = {
  display_name: 'Atlas iOS',
  package_name: 'com.example.atlasIos',
  min_sdk_version: '13.0',
  target_sdk_version: '17.4',
  architectures: ['arm64'],
}

let service: TestService
let owner: TestAccount
let appId: string
let aab: Buffer
let apk: Buffer
let xcarchive: Buffer

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
  aab = await readRealArchive('aab-basic.aab')
  apk = await readRealArchive('real-tc-debug.apk')
  xcarchive = await readRealArchive('ios-xcarchive.zip')
})
afterAll(() => service.stop())
beforeEach(async () => {
  appId = await createTestApp(owner)
})

const getApp = () => owner.api.getApp({ params: { appId } })
const release = (version: string, platform: 'android' | 'ios', arch: string, bytes?: Buffer) =>
  releaseAndAnalyze(service, owner, { appId, version, platform, arch, ...(bytes === undefined ? {} : { bytes }) })

describe('AppMetadata', () => {
  it('has the newest analyzed release of each platform, and what its archive says', async () => {
    const android = await release('1.0.0', 'android', 'aab', aab)
    const ios = await release('1.1.0', 'ios', 'xcarchive', xcarchive)
    const app = await getApp()
    expect(app.latest_releases).toEqual({
      android: {
        id: android,
        version: '1.0.0',
        flutter_revision: 'deadbeef',
        created_at: expect.any(String),
        updated_at: expect.any(String),
        status: 'draft',
        analysis: aabAnalysis,
      },
      ios: expect.objectContaining({ id: ios, version: '1.1.0', analysis: iosAnalysis }),
    })
    expect(app.pending_releases).toEqual({})
    expect(app.platforms).toEqual(['android', 'ios'])
  })

  it('has the status and the notes of the release on that platform', async () => {
    const releaseId = await release('1.0.0', 'android', 'aab', aab)
    await release('1.0.0', 'ios', 'xcarchive', xcarchive)
    const params = { appId, releaseId }
    await owner.api.updateRelease({ params, body: { status: 'active', platform: 'android', notes: 'first' } })
    const { latest_releases } = await getApp()
    expect(latest_releases?.android).toMatchObject({ status: 'active', notes: 'first' })
    expect(latest_releases?.ios).toMatchObject({ status: 'draft', notes: 'first' })
  })

  it('keeps the older release while the newest cannot be analyzed, which is pending', async () => {
    const older = await release('1.0.0', 'android', 'aab', aab)
    const newer = await release('2.0.0', 'android', 'aab', Buffer.from('no archive'))
    const app = await getApp()
    expect(app.latest_releases?.android).toMatchObject({ id: older, version: '1.0.0' })
    expect(app.pending_releases).toEqual({
      android: { id: newer, version: '2.0.0', created_at: expect.any(String) },
    })
  })

  it('has a release pending that is not analyzed yet, and a platform whose artifacts say nothing', async () => {
    const releaseId = await createTestRelease(owner.api, appId)
    await uploadTestReleaseArtifact(owner.api, { appId, releaseId }, { bytes: aab })
    await uploadTestReleaseArtifact(owner.api, { appId, releaseId }, { platform: 'ios', arch: 'ios_supplement' })
    const app = await getApp()
    expect(app).toMatchObject({ platforms: ['android', 'ios'], latest_releases: {} })
    expect(Object.keys(app.pending_releases ?? {})).toEqual(['android', 'ios'])
    expect(app.icon_url).toBeUndefined()
  })

  it('is the same in every list', async () => {
    await release('1.0.0', 'android', 'aab', aab)
    const app = await getApp()
    const find = (apps: { app_id: string }[]) => apps.find(({ app_id }) => app_id === appId)
    expect(find((await owner.api.listApps()).apps)).toEqual(app)
    const params = { organizationId: owner.organizationId }
    expect(find((await owner.api.listOrganizationApps({ params })).apps)).toEqual(app)
  })

  it('forgets what an artifact said with the artifact', async () => {
    const releaseId = await release('1.0.0', 'android', 'aab', aab)
    await owner.api.deleteReleaseArtifacts({ params: { appId, releaseId }, query: {} })
    expect(await getApp()).toMatchObject({ platforms: [], latest_releases: {}, pending_releases: {} })
  })
})

describe('the artifact that counts', () => {
  it('is the bundle, not the APK, whichever came first', async () => {
    const releaseId = await release('1.0.0', 'android', 'apk', apk)
    expect((await getApp()).latest_releases?.android?.analysis).toMatchObject({
      package_name: 'org.t0t0.androguard.TC',
    })
    await release('1.0.0', 'android', 'aab', aab)
    expect((await getApp()).latest_releases?.android?.analysis).toEqual(aabAnalysis)
    await analyzeRelease(service.deps, { releaseId, platform: 'android', again: true })
    expect((await getApp()).latest_releases?.android?.analysis).toEqual(aabAnalysis)
  })

  it('is not believed for another platform than its own', async () => {
    await release('1.0.0', 'ios', 'xcarchive', aab)
    const app = await getApp()
    expect(app.latest_releases).toEqual({})
    expect(app.pending_releases).toHaveProperty('ios')
  })
})

describe('GET /api/v1/apps/{appId}/icon', () => {
  const getIcon = (query = '', headers: Record<string, string> = { authorization: `Bearer ${owner.apiKey}` }) =>
    fetch(`${service.baseUrl}/api/v1/apps/${appId}/icon${query}`, { headers })

  it('answers the PNG of the release, which whoever may see the app can keep for ever', async () => {
    const releaseId = await release('1.0.0', 'android', 'aab', aab)
    const { icon_url } = await getApp()
    expect(icon_url).toBe(`${service.baseUrl}/api/v1/apps/${appId}/icon?v=${releaseId}`)
    const answer = await fetch(icon_url ?? '', { headers: { authorization: `Bearer ${owner.apiKey}` } })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('image/png')
    expect(answer.headers.get('cache-control')).toBe('private, max-age=31536000, immutable')
    const bytes = Buffer.from(await answer.arrayBuffer())
    expect(Number(answer.headers.get('content-length'))).toBe(bytes.length)
    expect(bytes.subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n')
    expect(Buffer.from(await owner.api.getAppIcon({ params: { appId } }))).toEqual(bytes)
  })

  it('is that of iOS where there is one, whatever v says', async () => {
    const android = await release('2.0.0', 'android', 'aab', aab)
    const ofAndroid = Buffer.from(await (await getIcon()).arrayBuffer())
    const ios = await release('1.0.0', 'ios', 'xcarchive', xcarchive)
    expect((await getApp()).icon_url).toMatch(new RegExp(`v=${ios}$`))
    for (const v of [`?v=${android}`, '?v=', '']) {
      const bytes = Buffer.from(await (await getIcon(v)).arrayBuffer())
      expect(bytes.equals(ofAndroid)).toBe(false)
    }
  })

  it('is a 404 when no release has one, and a 401 or 404 for whoever may not see the app', async () => {
    expect((await getIcon()).status).toBe(404)
    await release('1.0.0', 'android', 'aab', aab)
    expect((await getIcon('', {})).status).toBe(401)
    const stranger = await service.createAccount()
    expect((await getIcon('', { authorization: `Bearer ${stranger.apiKey}` })).status).toBe(404)
  })
})
