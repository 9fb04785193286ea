import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { analyzeRelease } from '../../src/analysis/actions.ts'
import { buildApp } from '../../src/app.ts'
import { createBlobCache } from '../../src/blobs/blob-cache.ts'
import { partBytes } from '../../src/blobs/s3/location.ts'
import type { Config } from '../../src/config.ts'
import { createDeps } from '../../src/create-deps.ts'
import { sweepBlobs } from '../../src/transfers/sweep-blobs.ts'
import { readRealArchive } from '../analysis/releases.ts'
import { recordRequests } from '../blobs/record-requests.ts'
import { createTestRelease, uploadTestReleaseArtifact } from '../support/publishing.ts'
import { noS3Server, type S3Server, startS3Server, toLocation } from '../support/s3-server.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { createPublisher, findReceivedBytes, type Publisher, sha256 } from './artifacts.ts'
import { askProgress, putChunk, send } from './http.ts'

describe.skipIf(noS3Server !== undefined)('transfers with a bucket', () => {
  let server: S3Server
  let setting: string
  let service: TestService
  let account: TestAccount
  let publisher: Publisher
  let now: Date | undefined

  beforeAll(async () => {
    server = await startS3Server()
    setting = server.newBlobsSetting()
    service = await createTestService({ config: { blobs: toLocation(setting) }, clock: () => now ?? new Date() })
    account = await service.createAccount()
  })
  beforeEach(async () => {
    now = undefined
    publisher = await createPublisher(account)
  })
  afterAll(async () => {
    await service?.stop()
    await server?.remove()
  })

  /** Another instance on the same database and bucket, with a folder of its own. */
  async function startInstance(config: Partial<Config> = {}) {
    const { deps, connectionString } = service
    const { deps: others, close } = await createDeps({
      config: {
        ...deps.config,
        dataDir: `${service.dataDir}-2`,
        blobCacheDir: `${service.dataDir}-2/cache`,
        ...config,
      },
      log: deps.log,
      connectionString,
    })
    const app = await buildApp(others)
    const address = await app.http.listen({ port: 0, host: '127.0.0.1' })
    return {
      deps: others,
      at: (url: string) => url.replace(service.baseUrl, address),
      stop: async () => {
        await app.http.close()
        await close()
      },
    }
  }

  async function uploadPatch(bytes = randomBytes(1000)) {
    const patch = await publisher.registerPatch(bytes)
    expect(await send('POST', patch.url, { body: bytes })).toMatchObject({ status: 200 })
    return { bytes, key: patch.key, url: service.deps.urls.sign('download', patch.key) }
  }

  const listParts = async (key: string) =>
    (await server.listObjects()).filter((name) => name.includes(`uploads/${key}`))

  it('takes an upload that goes from one instance to another with every chunk', async () => {
    const bytes = randomBytes(2 * partBytes + 100_000)
    const { arch, url, key } = await publisher.registerRelease(bytes)
    const other = await startInstance()
    try {
      const targets = [url, other.at(url)]
      const steps = [0, 3_000_000, partBytes, partBytes + 1, 2 * partBytes + 5, bytes.length]
      for (const [index, from] of steps.slice(0, -1).entries()) {
        const to = (steps[index + 1] ?? 0) - 1
        const answer = await putChunk(targets[index % 2] ?? '', bytes, from, to)
        const isLast = to === bytes.length - 1
        expect({ status: answer.status, range: answer.headers.range }).toEqual(
          isLast ? { status: 200, range: undefined } : { status: 308, range: `bytes=0-${to}` },
        )
        expect(await askProgress(targets[(index + 1) % 2] ?? '', bytes.length)).toMatchObject({ status: answer.status })
      }
    } finally {
      await other.stop()
    }
    expect(await listParts(key)).toEqual([])
    const downloaded = await fetch(await publisher.downloadUrl(arch))
    expect(sha256(Buffer.from(await downloaded.arrayBuffer()))).toBe(sha256(bytes))
  })

  it('never mixes what arrives at two instances at once', async () => {
    const other = await startInstance()
    try {
      const [first, second] = [randomBytes(partBytes + 50_000), randomBytes(partBytes + 50_000)]
      const { url, key } = await publisher.registerPatch(first)
      const answers = await Promise.all([
        send('POST', url, { body: first }),
        send('POST', other.at(url), { body: second }),
      ])
      expect(answers.some(({ status }) => status === 200)).toBe(true)
      const stored = await fetch(service.deps.urls.sign('download', key))
      const hash = sha256(Buffer.from(await stored.arrayBuffer()))
      expect([sha256(first), sha256(second)]).toContain(hash)
    } finally {
      await other.stop()
    }
  })

  it('refuses bytes that have another hash, and leaves nothing of them', async () => {
    const bytes = randomBytes(5000)
    const { url, key } = await publisher.registerRelease(bytes, { hash: sha256(Buffer.from('other')) })
    expect(await send('POST', url, { body: bytes })).toMatchObject({ status: 400, code: 'hash_mismatch' })
    expect(await listParts(key)).toEqual([])
    expect(await findReceivedBytes(service, key)).toBe(0)
  })

  it('takes more than 100 MB with constant memory', { timeout: 60_000 }, async () => {
    const piece = randomBytes(1024 ** 2)
    const count = 120
    const bytes = Buffer.concat(Array.from({ length: count }, () => piece))
    const { url } = await publisher.registerPatch(bytes)
    const startBytes = process.memoryUsage().arrayBuffers
    let mostBytes = 0
    async function* generate() {
      for (let sent = 0; sent < count; sent += 1) {
        mostBytes = Math.max(mostBytes, process.memoryUsage().arrayBuffers - startBytes)
        yield piece
      }
    }
    expect(await send('PUT', url, { body: generate() })).toMatchObject({ status: 200 })
    expect(mostBytes).toBeLessThan(80_000_000)
  })

  it('redirects a download to the bucket, for a range too, and answers what a bucket would answer wrongly itself', async () => {
    const { bytes, url } = await uploadPatch()
    const redirect = await send('GET', url)
    expect(redirect).toMatchObject({ status: 302, headers: { 'cache-control': 'no-store' } })
    expect(redirect.headers.location).toContain(`${server.endpoint}/${server.bucket}/`)
    const followed = await fetch(url, { headers: { range: 'bytes=400-' } })
    expect(followed.status).toBe(206)
    expect(followed.headers.get('content-range')).toBe('bytes 400-999/1000')
    expect(Buffer.from(await followed.arrayBuffer()).equals(bytes.subarray(400))).toBe(true)
    // A device that has every byte asks so, and would never recover from 416.
    expect(await send('GET', url, { headers: { range: 'bytes=1000-' } })).toMatchObject({ status: 200, body: bytes })
    const { headers, status } = await send('HEAD', url)
    expect({ status, length: headers['content-length'] }).toEqual({ status: 200, length: '1000' })
    expect(await send('GET', service.deps.urls.sign('download', '0'.repeat(32)))).toMatchObject({ status: 404 })
  })

  it('proxies with ranges, ETag and length where devices cannot reach the bucket', async () => {
    const { bytes, url } = await uploadPatch()
    const other = await startInstance({ downloads: { isProxied: true, cdnUrl: undefined } })
    try {
      const whole = await send('GET', other.at(url))
      expect(whole).toMatchObject({ status: 200, body: bytes })
      expect(whole.headers).toMatchObject({ 'content-length': '1000', 'content-type': 'application/octet-stream' })
      const etag = whole.headers.etag ?? ''
      const part = await send('GET', other.at(url), { headers: { range: 'bytes=10-19', 'if-range': etag } })
      expect(part).toMatchObject({ status: 206, body: bytes.subarray(10, 20) })
      expect(part.headers['content-range']).toBe('bytes 10-19/1000')
      expect(await send('GET', other.at(url), { headers: { 'if-none-match': etag } })).toMatchObject({ status: 304 })
    } finally {
      await other.stop()
    }
  })

  it('redirects patches to the CDN, and releases to a URL that expires', async () => {
    const { key, url } = await uploadPatch()
    const bytes = randomBytes(1000)
    const release = await publisher.registerRelease(bytes)
    await send('POST', release.url, { body: bytes })
    const other = await startInstance({ downloads: { isProxied: false, cdnUrl: 'https://cdn.example.com/godwit' } })
    try {
      const { prefix } = toLocation(setting).location
      const patchAnswer = await send('GET', other.at(url))
      expect(patchAnswer.headers.location).toBe(`https://cdn.example.com/godwit/${prefix}blobs/${key}`)
      const releaseAnswer = await send('GET', other.at(await publisher.downloadUrl(release.arch)))
      expect(releaseAnswer.headers.location).toContain('X-Amz-Expires=900')
    } finally {
      await other.stop()
    }
  })

  it('gives patches from the cache while the bucket is away, refuses the rest at once, and resumes uploads', async () => {
    const { bytes, key, url } = await uploadPatch()
    expect(await send('GET', url)).toMatchObject({ status: 302 })
    const cache = await createBlobCache({ dir: service.deps.config.blobCacheDir, maxBytes: 1e9, log: service.deps.log })
    await expect.poll(() => cache.find(key), { timeout: 10_000 }).toMatchObject({ sizeBytes: 1000 })
    const release = randomBytes(1000)
    const registered = await publisher.registerRelease(release)
    await send('POST', registered.url, { body: release })
    const releaseUrl = await publisher.downloadUrl(registered.arch)
    const large = randomBytes(2 * partBytes)
    const upload = await publisher.registerRelease(large)
    expect(await putChunk(upload.url, large, 0, partBytes - 1)).toMatchObject({ status: 308 })

    await server.kill()
    try {
      await expect.poll(() => send('GET', url), { timeout: 15_000 }).toMatchObject({ status: 200, body: bytes })
      const part = await send('GET', url, { headers: { range: 'bytes=500-' } })
      expect(part).toMatchObject({ status: 206, body: bytes.subarray(500) })
      const startedAt = performance.now()
      const refused = await send('GET', releaseUrl)
      expect(refused).toMatchObject({ status: 503, code: 'unavailable', headers: { 'retry-after': '5' } })
      expect(performance.now() - startedAt).toBeLessThan(5000)
      expect(await putChunk(upload.url, large, partBytes, large.length - 1)).toMatchObject({ status: 503 })
      expect((await account.api.listApps()).apps.length).toBeGreaterThan(0)
    } finally {
      await server.start()
    }
    await expect
      .poll(() => askProgress(upload.url, large.length), { timeout: 15_000 })
      .toMatchObject({
        status: 308,
        headers: { range: `bytes=0-${partBytes - 1}` },
      })
    expect(await putChunk(upload.url, large, partBytes, large.length - 1)).toMatchObject({ status: 200 })
    expect((await fetch(releaseUrl)).status).toBe(200)
  })

  it('sweeps what was abandoned, and keeps what an upload has that goes on', async () => {
    const bytes = randomBytes(1000)
    const abandoned = await publisher.registerRelease(bytes)
    await putChunk(abandoned.url, bytes, 0, 499)
    await sweepBlobs(service.deps)
    expect(await listParts(abandoned.key)).toHaveLength(1)
    now = new Date(Date.now() + 25 * 60 * 60 * 1000)
    const running = await publisher.registerRelease(bytes)
    await putChunk(running.url, bytes, 0, 499)
    now = new Date(now.getTime() + 60_000)
    await sweepBlobs(service.deps)
    expect(await listParts(abandoned.key)).toEqual([])
    expect(await putChunk(running.url, bytes, 500, 999)).toMatchObject({ status: 200 })
  })

  it('lets the analyzer read an archive by few ranges', async () => {
    const recorder = await recordRequests(server.endpoint)
    const url = new URL(setting)
    url.searchParams.set('endpoint', recorder.endpoint)
    const other = await startInstance({ blobs: toLocation(url.href) })
    try {
      const releaseId = await createTestRelease(account.api, publisher.appId, '2.0.0')
      const archive = await readRealArchive('aab-basic.aab')
      await uploadTestReleaseArtifact(account.api, { appId: publisher.appId, releaseId }, { bytes: archive })
      await analyzeRelease(other.deps, { releaseId, platform: 'android' })
      const row = await service.deps.db
        .selectFrom('release_analyses')
        .selectAll()
        .where('release_id', '=', releaseId)
        .executeTakeFirstOrThrow()
      expect(row.is_analyzed).toBe(true)
      const reads = recorder.requests.filter(({ method, url: path }) => method === 'GET' && path.includes('blobs/'))
      expect(reads.length).toBeGreaterThan(0)
      expect(reads.length).toBeLessThan(20)
      for (const { headers } of reads)
        expect(headers).toMatchObject({ range: expect.stringMatching(/^bytes=/), 'if-match': expect.any(String) })
    } finally {
      await other.stop()
      await recorder.stop()
    }
  })
})
