import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request as startRequest } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type BlobStore, BlobsUnavailableError } from '../../src/blobs/blob-store.ts'
import { openBucket } from '../../src/blobs/s3/bucket.ts'
import { partBytes } from '../../src/blobs/s3/location.ts'
import { createS3BlobStore } from '../../src/blobs/s3/s3-blob-store.ts'
import { noS3Server, type S3Server, startS3Server, toLocation } from '../support/s3-server.ts'
import { recordRequests } from './record-requests.ts'
import { openTestBlob, sha256, type TestBlob } from './test-blob.ts'

// What it has in common with other stores is in blob-store.test.ts.
describe.skipIf(noS3Server !== undefined)('the S3 blob store', () => {
  let server: S3Server
  let setting: string
  let blobs: BlobStore
  let key: string
  let blob: TestBlob

  const open = (parameters: Record<string, string> = {}, isProxied = false) => {
    const url = new URL(setting)
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    return createS3BlobStore({ location: toLocation(url.href).location, cdnUrl: undefined, isProxied })
  }
  const list = async () => (await server.listObjects()).filter((name) => name.includes(key))
  const readBytes = async () => {
    const found = await blobs.find(key)
    return found === undefined ? undefined : await buffer(await found.read({ start: 0, end: found.sizeBytes - 1 }))
  }

  beforeAll(async () => {
    server = await startS3Server()
  })
  beforeEach(() => {
    setting = server.newBlobsSetting()
    blobs = open()
    key = randomBytes(16).toString('hex')
    blob = openTestBlob(blobs, key)
  })
  afterAll(async () => await server?.remove())

  it('makes one object of chunks of any size, and leaves no parts', async () => {
    const bytes = randomBytes(2 * partBytes + 1_234_567)
    for (const [from, to] of [
      [0, 1],
      [1, 5_000_000],
      [5_000_000, partBytes],
      [partBytes, 2 * partBytes + 1],
      [2 * partBytes + 1, bytes.length],
    ] as const) {
      const chunk = bytes.subarray(from, to)
      expect(await blob.write(from, chunk)).toEqual({ writtenBytes: chunk.length, failure: undefined })
    }
    expect(blob.parts).toHaveLength(3)
    expect(await blob.hash(bytes.length)).toBe(sha256(bytes))
    await blob.finish(bytes.length)
    expect((await readBytes())?.equals(bytes)).toBe(true)
    await blobs.dropParts(key, blob.parts)
    // The tails that were stored again with what followed: the actions drop them, and the sweep what they miss.
    expect((await list()).filter((name) => name.includes('blobs/'))).toHaveLength(1)
  })

  it('lets two that write at one place do so without touching what the other has stored', async () => {
    const [one, two] = [openTestBlob(blobs, key), openTestBlob(blobs, key)]
    const [first, second] = [randomBytes(partBytes + 10), randomBytes(partBytes + 10)]
    await Promise.all([one.write(0, first), two.write(0, second)])
    expect(await one.hash(first.length)).toBe(sha256(first))
    expect(await two.hash(second.length)).toBe(sha256(second))
    const outcomes = await Promise.allSettled([one.finish(first.length), two.finish(second.length)])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const winner = outcomes[0]?.status === 'fulfilled' ? first : second
    expect((await readBytes())?.equals(winner)).toBe(true)
  })

  it('makes no object where there is one, however it is made', async () => {
    const bucket = openBucket(toLocation(setting).location)
    const name = `blobs/${key}`
    const [first, second] = [Buffer.from('first'), Buffer.from('other')]
    await bucket.putBlob(name, first, sha256(first))
    await expect(bucket.putBlob(name, second, sha256(second))).rejects.toThrow(/PreconditionFailed|pre-conditions/)
    await bucket.putPart('uploads/part', second)
    const uploadId = await bucket.startMultipart(name, sha256(second))
    const copied = [await bucket.copyPart(name, uploadId, 1, 'uploads/part')]
    await expect(bucket.completeMultipart(name, uploadId, copied)).rejects.toThrow(/PreconditionFailed|pre-conditions/)
    expect(await readBytes()).toEqual(first)
  })

  it('is finished by several at once as by one', async () => {
    const bytes = randomBytes(3 * partBytes)
    await blob.write(0, bytes)
    const finished = { sizeBytes: bytes.length, sha256: sha256(bytes), parts: blob.parts }
    await Promise.all([open(), open(), open()].map((store) => store.finish(key, finished)))
    expect((await readBytes())?.equals(bytes)).toBe(true)
    expect(await list()).toHaveLength(1)
    expect(await blob.hash(bytes.length)).toBe(sha256(bytes))
  })

  it('is finished by the next who tries after a crash at any request', async () => {
    const bytes = randomBytes(2 * partBytes + 5)
    const recorder = await recordRequests(server.endpoint)
    await blob.write(0, bytes)
    const finished = { sizeBytes: bytes.length, sha256: sha256(bytes), parts: blob.parts }
    try {
      for (let failAfter = 0; ; failAfter += 1) {
        recorder.failAfter(failAfter)
        const store = open({ endpoint: recorder.endpoint })
        const isDone = await store.finish(key, finished).then(
          () => true,
          () => false,
        )
        if (isDone && !recorder.hasFailed()) break
        expect(failAfter).toBeLessThan(20)
        const there = await readBytes()
        if (there !== undefined) expect(there.equals(bytes)).toBe(true)
      }
    } finally {
      await recorder.stop()
    }
    expect((await readBytes())?.equals(bytes)).toBe(true)
  })

  it('refuses credentials that are wrong, because the server verifies signatures', async () => {
    const right = process.env.AWS_SECRET_ACCESS_KEY
    process.env.AWS_SECRET_ACCESS_KEY = 'another-secret'
    const stranger = open()
    try {
      await expect(stranger.check()).rejects.toThrow(BlobsUnavailableError)
      const write = await openTestBlob(stranger, key).write(0, 'hello')
      expect(write).toMatchObject({ writtenBytes: 0, failure: expect.any(BlobsUnavailableError) })
      expect(String(write.failure)).toContain('SignatureDoesNotMatch')
      await expect(stranger.find(key)).rejects.toThrow(BlobsUnavailableError)
    } finally {
      process.env.AWS_SECRET_ACCESS_KEY = right
    }
    expect(await list()).toEqual([])
  })

  it('says that a bucket is not there', async () => {
    const location = { ...toLocation(setting).location, bucket: 'no-such-bucket' }
    const elsewhere = createS3BlobStore({ location, cdnUrl: undefined, isProxied: false })
    await expect(elsewhere.check()).rejects.toThrow('there is no bucket no-such-bucket')
    const { failure } = await openTestBlob(elsewhere, key).write(0, 'hello')
    expect(failure).toBeInstanceOf(BlobsUnavailableError)
  })

  it.each([
    [{ sse: 'AES256' }, { 'x-amz-server-side-encryption': 'AES256' }],
    [
      { sse: 'aws:kms', kms_key: 'alias/godwit' },
      { 'x-amz-server-side-encryption': 'aws:kms', 'x-amz-server-side-encryption-aws-kms-key-id': 'alias/godwit' },
    ],
  ])('asks for encryption of everything that it stores: %j', async (parameters, headers) => {
    const recorder = await recordRequests(server.endpoint)
    try {
      const store = open({ ...parameters, endpoint: recorder.endpoint })
      for (const size of [5, partBytes + 5]) {
        key = randomBytes(16).toString('hex')
        const stored = openTestBlob(store, key)
        await stored.write(0, randomBytes(size))
        // The server here does not encrypt, and may say so.
        await stored.finish(size).catch(() => undefined)
      }
    } finally {
      await recorder.stop()
    }
    const storing = recorder.requests.filter(
      ({ method, url, headers }) =>
        (method === 'PUT' && headers['x-amz-copy-source'] === undefined) ||
        (method === 'POST' && /\?uploads/.test(url)),
    )
    expect(storing.length).toBeGreaterThan(3)
    for (const request of storing) expect(request.headers).toMatchObject(headers)
  })

  it('gives URLs that a plain client can follow, for a while, and for these bytes alone', async () => {
    await blob.write(0, 'hello world')
    await blob.finish(11)
    const url = (await (await blobs.find(key))?.locate({ isPublic: true })) ?? ''
    const answer = await fetch(url)
    expect(answer.status).toBe(200)
    expect(await answer.text()).toBe('hello world')
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': '11',
      'cache-control': 'public, max-age=31536000, immutable, no-transform',
    })
    expect(answer.headers.has('content-encoding')).toBe(false)
    const part = await fetch(url, { headers: { range: 'bytes=6-' } })
    expect({ status: part.status, text: await part.text() }).toEqual({ status: 206, text: 'world' })
    expect(part.headers.get('content-range')).toBe('bytes 6-10/11')
    expect(new URL(url).searchParams.get('X-Amz-Expires')).toBe('900')
    expect(
      (
        await fetch(
          url.replace(
            key,
            key.replace(/^./, (c) => (c === '0' ? '1' : '0')),
          ),
        )
      ).status,
    ).toBe(403)
  })

  it('signs for a bucket that has a host name of its own', async () => {
    await blob.write(0, 'hello world')
    await blob.finish(11)
    const { port } = new URL(server.endpoint)
    const named = open({ path_style: 'false', public_endpoint: `http://localhost:${port}` })
    const url = new URL((await (await named.find(key))?.locate({ isPublic: true })) ?? '')
    expect(url.host).toBe(`${server.bucket}.localhost:${port}`)
    expect(url.pathname).not.toContain(server.bucket)
    // The name is in no DNS here; what the server checks is the header.
    const get = async (path: string) => {
      const request = startRequest({ host: '127.0.0.1', port, path, headers: { host: url.host } }).end()
      const [answer] = await once(request, 'response')
      return { status: answer.statusCode, text: String(await buffer(answer)) }
    }
    expect(await get(url.pathname + url.search)).toEqual({ status: 200, text: 'hello world' })
    expect((await get(url.pathname + url.search.replace('Expires=900', 'Expires=901'))).status).toBe(403)
  })

  it('gives no URL when devices cannot reach the bucket', async () => {
    await blob.write(0, 'hello')
    await blob.finish(5)
    expect(await (await open({}, true).find(key))?.locate({ isPublic: true })).toBeUndefined()
  })

  it('removes what is left over, and nothing of an upload that runs', async () => {
    const [running, finished, gone] = [key, randomBytes(16).toString('hex'), randomBytes(16).toString('hex')]
    for (const each of [running, finished, gone]) await openTestBlob(blobs, each).write(0, 'hello')
    const bucket = openBucket(toLocation(setting).location)
    for (const each of [running, finished]) await bucket.startMultipart(`blobs/${each}`, sha256('hello'))
    const listMultiparts = async () => {
      const uploads: string[] = []
      for await (const page of bucket.listMultiparts('blobs/')) uploads.push(...page.map(({ name }) => name))
      return uploads
    }
    const findUnfinished = async (keys: string[]) => new Set(keys.filter((each) => each === running))
    const soon = new Date(Date.now() + 60_000)
    expect(await blobs.removeLeftovers({ before: new Date(Date.now() - 60_000), findUnfinished })).toBe(0)
    expect(await blobs.removeLeftovers({ before: soon, findUnfinished })).toBe(3)
    expect(await listMultiparts()).toEqual([`blobs/${running}`])
    expect(await list()).toHaveLength(1)
    await blobs.remove(running)
    expect(await list()).toEqual([])
    expect(await listMultiparts()).toEqual([])
  })

  it('fails fast while the server is away or hangs, and works again', async () => {
    const store = open()
    await openTestBlob(store, key).write(0, 'hello')
    const expectUnavailable = async (withinMs: number) => {
      const startedAt = performance.now()
      await expect(store.find(key)).rejects.toThrow(BlobsUnavailableError)
      expect(performance.now() - startedAt).toBeLessThan(withinMs)
    }
    await server.pause()
    try {
      await Promise.all([1, 2, 3].map(() => expectUnavailable(5000)))
      // It is known now.
      for (let n = 0; n < 20; n += 1) await expectUnavailable(100)
    } finally {
      server.resume()
    }
    await expect.poll(() => store.find(key).catch(() => 'away'), { timeout: 10_000 }).toBeUndefined()
    await server.kill()
    for (let n = 0; n < 5; n += 1) await expectUnavailable(3000)
    await server.start()
    await expect.poll(() => store.find(key).catch(() => 'away'), { timeout: 10_000 }).toBeUndefined()
  })

  it('says how much is stored when the server goes away in the middle of a write', async () => {
    async function* breakOff() {
      yield randomBytes(partBytes)
      yield Buffer.alloc(1)
      await server.kill()
      yield randomBytes(partBytes)
    }
    try {
      const { writtenBytes, parts, failure } = await blobs.write(key, { offset: 0, parts: [], source: breakOff() })
      expect({ writtenBytes, parts: parts.length }).toEqual({ writtenBytes: partBytes, parts: 1 })
      expect(failure).toBeInstanceOf(BlobsUnavailableError)
    } finally {
      await server.start()
    }
  })

  it('holds no more than a part of a write in memory', async () => {
    const piece = randomBytes(1024 ** 2)
    let mostAhead = 0
    async function* watchAhead() {
      for (let read = 0; read < 64; read += 1) {
        const storedBytes = (await list()).length * partBytes
        mostAhead = Math.max(mostAhead, read * piece.length - storedBytes)
        yield piece
      }
    }
    await blobs.write(key, { offset: 0, parts: [], source: watchAhead() })
    expect(mostAhead).toBeLessThan(partBytes)
  })
})
