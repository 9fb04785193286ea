import { PatchCheckResponse } from '@godwit/contract'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, createTestRelease, findChannelId, uploadTestPatchArtifact } from '../support/publishing.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'

const releaseVersion = '1.0.0+1'

let service: TestService
let owner: TestAccount
let appId: string
let releaseId: number
let stableId: number

beforeAll(async () => {
  service = await createTestService()
  owner = await service.createAccount()
})
afterAll(() => service.stop())

async function newApp() {
  appId = await createTestApp(owner)
  releaseId = await createTestRelease(owner.api, appId, releaseVersion)
  stableId = await findChannelId(owner.api, appId)
}

async function createPatch(
  options: { platform?: 'android' | 'ios'; arch?: string; promoteTo?: number | undefined } = {},
) {
  const patch = await owner.api.createPatch({ params: { appId }, body: { release_id: releaseId } })
  const uploaded = await uploadTestPatchArtifact(owner.api, { appId, patchId: patch.id }, options)
  if ('promoteTo' in options && options.promoteTo === undefined) return { ...patch, ...uploaded }
  await promote(patch.id, options.promoteTo ?? stableId)
  return { ...patch, ...uploaded }
}

function promote(patchId: number, channelId: number) {
  return owner.api.promotePatch({ params: { appId }, body: { patch_id: patchId, channel_id: channelId } })
}

function send(body: unknown, init: RequestInit = {}, path = '/api/v1/patches/check') {
  return fetch(service.baseUrl + path, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
  })
}

function checkBody(overrides: Record<string, unknown> = {}) {
  const place = { channel: 'stable', platform: 'android', arch: 'aarch64' }
  return { app_id: appId, release_version: releaseVersion, ...place, ...overrides }
}

async function check(overrides: Record<string, unknown> = {}) {
  const response = await send(checkBody(overrides))
  expect(response.status).toBe(200)
  const body = await response.json()
  expect(PatchCheckResponse.parse(body)).toEqual(body)
  return body as PatchCheckResponse
}

describe('POST /api/v1/patches/check', () => {
  it('offers the promoted patch with its hash, signature and a URL that needs nothing else', async () => {
    await newApp()
    const { number, bytes, hash } = await createPatch()
    const body = await check()
    expect(body).toEqual({
      patch_available: true,
      patch: { number, hash, download_url: expect.stringContaining(`${service.baseUrl}/downloads/`) },
    })
    const download = await fetch(body.patch?.download_url ?? '')
    expect(Buffer.from(await download.arrayBuffer())).toEqual(bytes)
  })

  it('offers the highest patch that has an artifact for this platform and arch', async () => {
    await newApp()
    await createPatch({ platform: 'android' })
    await createPatch({ platform: 'ios' })
    expect((await check()).patch?.number).toBe(1)
    expect((await check({ platform: 'ios' })).patch?.number).toBe(2)
    expect(await check({ platform: 'ios', arch: 'x86_64' })).toEqual({ patch_available: false })
  })

  it('follows a patch that moves to another channel, also to a lower number', async () => {
    await newApp()
    await createPatch()
    const second = await createPatch()
    const beta = await owner.api.createChannel({ params: { appId }, body: { channel: 'béta 🎯' } })
    expect((await check()).patch?.number).toBe(2)
    await promote(second.id, beta.id)
    expect((await check()).patch?.number).toBe(1)
    expect((await check({ channel: 'béta 🎯' })).patch?.number).toBe(2)
    await owner.api.deleteChannel({ params: { appId, channelId: beta.id } })
    expect(await check({ channel: 'béta 🎯' })).toEqual({ patch_available: false })
  })

  it('lists all rolled back numbers of the release, whatever the channel or platform, and offers the next best', async () => {
    await newApp()
    await createPatch()
    const second = await createPatch({ platform: 'ios', promoteTo: undefined })
    const third = await createPatch()
    const rollBack = (patchId: number) => owner.api.rollBackPatch({ params: { appId, releaseId, patchId } })
    await rollBack(third.id)
    expect(await check()).toMatchObject({ patch: { number: 1 }, rolled_back_patch_numbers: [3] })
    await rollBack(second.id)
    expect(await check({ arch: 'arm' })).toEqual({ patch_available: false, rolled_back_patch_numbers: [2, 3] })
    await owner.api.rollForwardPatch({ params: { appId, releaseId, patchId: third.id } })
    expect(await check()).toMatchObject({ patch: { number: 3 }, rolled_back_patch_numbers: [2] })
  })

  it('offers an artifact from the moment its last byte is there', async () => {
    await newApp()
    const { id } = await createPatch()
    expect(await check({ arch: 'x86_64' })).toEqual({ patch_available: false })
    await uploadTestPatchArtifact(owner.api, { appId, patchId: id }, { arch: 'x86_64' })
    expect((await check({ arch: 'x86_64' })).patch?.number).toBe(1)
  })

  it.each([
    [{ app_id: '5f0e0000-0000-4000-8000-000000000000' }],
    [{ app_id: 'anything' }],
    [{ channel: 'nope' }],
    [{ channel: '' }],
    [{ release_version: '9.9.9' }],
    [{ arch: 'riscv64' }],
  ])('answers 200 without a patch for the unknown %j', async (overrides) => {
    await newApp()
    await createPatch()
    expect(await check(overrides)).toEqual({ patch_available: false })
  })

  it('takes what older and newer updaters send', async () => {
    await newApp()
    await createPatch()
    const offered = { patch_available: true }
    expect(await check({ client_id: null, patch_number: null, patch_hash: null })).toMatchObject(offered)
    expect(await check({ client_id: '3f1f', current_patch_number: 1 })).toMatchObject(offered)
    expect(await check({ current_patch_number: null, something_new: [1] })).toMatchObject(offered)
    expect(await check({ patch_number: 0 })).toMatchObject(offered)
    expect(await check({ patch_number: 1 })).toEqual({ patch_available: false })
  })

  it('stops offering anything once the release or the app is deleted', async () => {
    await newApp()
    await createPatch()
    expect((await check()).patch_available).toBe(true)
    await owner.api.deleteRelease({ params: { appId, releaseId } })
    expect(await check()).toEqual({ patch_available: false })
    await newApp()
    await createPatch()
    expect((await check()).patch_available).toBe(true)
    await owner.api.deleteApp({ params: { appId } })
    expect(await check()).toEqual({ patch_available: false })
  })

  it('gives the same URL every time, also after a restart', async () => {
    await newApp()
    await createPatch()
    const before = (await check()).patch?.download_url
    await promote((await createPatch({ platform: 'ios' })).id, stableId)
    expect((await check()).patch?.download_url).toBe(before)
    await service.restart()
    expect((await check()).patch?.download_url).toBe(before)
  })

  it('is found under the double slash of a base URL with a trailing slash, and with a query', async () => {
    await newApp()
    for (const path of ['//api/v1/patches/check', '/api/v1/patches/check?x=1']) {
      expect((await send(checkBody(), {}, path)).status).toBe(200)
    }
  })

  it('echoes the request id, or makes one', async () => {
    await newApp()
    const echoed = await send(checkBody(), { headers: { 'x-request-id': 'launch-7' } })
    expect(echoed.headers.get('x-request-id')).toBe('launch-7')
    expect((await send('{')).headers.get('x-request-id')).toMatch(/^[\w-]{8,}$/)
  })

  it('has a length, and no encoding', async () => {
    await newApp()
    const response = await send(checkBody(), { headers: { 'accept-encoding': 'gzip' } })
    expect(response.headers.get('content-encoding')).toBeNull()
    expect(Number(response.headers.get('content-length'))).toBe(JSON.stringify({ patch_available: false }).length)
    expect(response.headers.get('content-type')).toContain('application/json')
  })
})

describe('a check that is sent after a rollback was answered', () => {
  it('is never offered the patch, however many changes are going on', async () => {
    await newApp()
    const { id: patchId } = await createPatch()
    const { db } = service.deps
    // A large app, whose index takes longer to build than a change takes.
    const others = await db
      .insertInto('patches')
      .values(
        Array.from({ length: 3000 }, (_, index) => ({
          release_id: releaseId,
          number: index + 100,
          channel_id: stableId,
        })),
      )
      .returning('id')
      .execute()
    const params = (id: number) => ({ appId, releaseId, patchId: id })
    let isOver = false
    const disturb = async () => {
      for (const { id } of others) {
        if (isOver) return
        await owner.api.rollBackPatch({ params: params(id) })
      }
    }
    const disturbing = Promise.all([disturb(), disturb()])
    for (let round = 0; round < 15; round += 1) {
      await owner.api.rollBackPatch({ params: params(patchId) })
      expect(await check()).toMatchObject({ patch_available: false })
      await owner.api.rollForwardPatch({ params: params(patchId) })
      expect(await check()).toMatchObject({ patch: { number: 1 } })
    }
    isOver = true
    await disturbing
  })
})

describe('the rate limit of devices', () => {
  it('is per device and app, never per address', async () => {
    const limited = await createTestService({ config: { requestsPerMinute: 3 } })
    const body = { ...checkBody(), app_id: 'a' }
    const post = async (overrides: object) => {
      const response = await fetch(`${limited.baseUrl}/api/v1/patches/check`, {
        method: 'POST',
        body: JSON.stringify({ ...body, ...overrides }),
      })
      return { status: response.status, retryAfter: response.headers.get('retry-after') }
    }
    for (let request = 0; request < 3; request += 1) expect((await post({ client_id: 'one' })).status).toBe(200)
    const refused = await post({ client_id: 'one' })
    expect(refused.status).toBe(429)
    expect(Number(refused.retryAfter)).toBeGreaterThan(0)
    expect((await post({ client_id: 'two' })).status).toBe(200)
    expect((await post({ client_id: 'one', app_id: 'b' })).status).toBe(200)
    for (let request = 0; request < 10; request += 1) expect((await post({})).status).toBe(200)
    await limited.stop()
  })
})
