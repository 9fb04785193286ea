import { randomBytes } from 'node:crypto'
import { readdir, readlink } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createTestService, type TestService } from '../support/test-service.ts'
import { createPublisher, type Publisher, readKey } from './artifacts.ts'
import { open, send } from './http.ts'

const bytes = randomBytes(1000)

let service: TestService
let publisher: Publisher
let now: Date | undefined
/** That of a release artifact, which expires. */
let url: string
let etag: string
/** That of a patch artifact, which does not. */
let patchUrl: string

beforeAll(async () => {
  service = await createTestService({ clock: () => now ?? new Date() })
  publisher = await createPublisher(await service.createAccount())
  const release = await publisher.registerRelease(bytes)
  await send('POST', release.url, { body: bytes })
  url = await publisher.downloadUrl(release.arch)
  etag = `"${readKey(url)}"`
  const patch = await publisher.registerPatch(bytes)
  await send('POST', patch.url, { body: bytes })
  patchUrl = service.deps.urls.sign('download', patch.key)
})
afterAll(async () => await service.stop())

const get = (headers: Record<string, string> = {}) => send('GET', url, { headers })
const whole = { status: 200, body: bytes }

describe('GET /downloads/{blobKey}', () => {
  it('gives the bytes and their length, as they are', async () => {
    const answer = await get({ 'accept-encoding': 'gzip, br' })
    expect(answer).toMatchObject(whole)
    expect(answer.headers).toMatchObject({
      'content-length': '1000',
      'content-type': 'application/octet-stream',
      'accept-ranges': 'bytes',
      'cache-control': 'private, no-transform',
      etag,
    })
    expect(answer.headers).not.toHaveProperty('content-encoding')
    expect(answer.headers).not.toHaveProperty('transfer-encoding')
  })

  it('tells caches that a patch never changes', async () => {
    const { headers } = await send('GET', patchUrl)
    expect(headers['cache-control']).toBe('public, max-age=31536000, immutable, no-transform')
  })

  it.each([
    ['bytes=0-', 0, 999],
    ['bytes=100-199', 100, 199],
    ['bytes=990-5000', 990, 999],
    ['bytes=-10', 990, 999],
    ['bytes=999-', 999, 999],
  ])('gives %s', async (range, start, end) => {
    const answer = await get({ range })
    expect(answer).toMatchObject({ status: 206, body: bytes.subarray(start, end + 1) })
    expect(answer.headers).toMatchObject({
      'content-range': `bytes ${start}-${end}/1000`,
      'content-length': String(end - start + 1),
      etag,
    })
  })

  it.each(['bytes=1000-', 'bytes=-0', 'bytes=0-1,5-6', 'bytes=9-3', 'lines=0-1', 'bytes'])(
    'gives everything for %s, which it cannot or does not serve',
    async (range) => {
      const answer = await get({ range })
      expect(answer).toMatchObject(whole)
      expect(answer.headers).not.toHaveProperty('content-range')
    },
  )

  it('resumes only the same content', async () => {
    expect(await get({ range: 'bytes=500-', 'if-range': etag })).toMatchObject({ status: 206 })
    expect(await get({ range: 'bytes=500-', 'if-range': '"other"' })).toMatchObject(whole)
  })

  it('answers 304 to who has it', async () => {
    const answer = await get({ 'if-none-match': etag })
    expect(answer).toMatchObject({ status: 304, body: Buffer.alloc(0), headers: { etag } })
    expect(await get({ 'if-none-match': '"other"' })).toMatchObject(whole)
  })

  it('answers HEAD with the same headers', async () => {
    const answer = await send('HEAD', url, { headers: { range: 'bytes=0-9' } })
    expect(answer).toMatchObject({ status: 200, body: Buffer.alloc(0) })
    expect(answer.headers).toMatchObject({ 'content-length': '1000', 'accept-ranges': 'bytes', etag })
  })

  it('needs a signature that is right and not expired', async () => {
    const refused = { status: 403, code: 'invalid_signature' }
    expect(await send('GET', `${url}x`)).toMatchObject(refused)
    expect(await send('GET', url.replace(/expires=\d+&/, ''))).toMatchObject(refused)
    now = new Date(Date.now() + 25 * 60 * 60 * 1000)
    expect(await send('GET', url)).toMatchObject(refused)
    expect(await send('GET', patchUrl)).toMatchObject({ status: 200 })
    now = undefined
  })

  it('knows no bytes that have not all arrived, and none that never did', async () => {
    const { key, url: uploadUrl } = await publisher.registerRelease(bytes)
    const headers = { 'content-range': 'bytes 0-499/1000' }
    await send('PUT', uploadUrl, { headers, body: bytes.subarray(0, 500) })
    for (const missing of [key, '0'.repeat(32)]) {
      const answer = await send('GET', service.deps.urls.sign('download', missing))
      expect(answer).toMatchObject({ status: 404, code: 'not_found' })
    }
  })

  it.skipIf(process.platform !== 'linux')('closes its file when the client goes away', async () => {
    const large = randomBytes(20_000_000)
    const { arch, url: uploadUrl, key } = await publisher.registerRelease(large)
    await send('POST', uploadUrl, { body: large })
    const { request } = open('GET', await publisher.downloadUrl(arch), {})
    request.end()
    request.on('response', (response) => response.pause())
    const countOpen = async () => {
      const names = await readdir('/proc/self/fd')
      const targets = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')))
      return targets.filter((target) => target.endsWith(key)).length
    }
    await vi.waitFor(async () => expect(await countOpen()).toBe(1), { interval: 5 })
    request.destroy()
    await vi.waitFor(async () => expect(await countOpen()).toBe(0), { interval: 5 })
  })
})
