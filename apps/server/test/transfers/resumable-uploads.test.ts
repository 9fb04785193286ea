import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type App, buildApp } from '../../src/app.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { createPublisher, findReceivedBytes, listBlobFiles, type Publisher, sha256 } from './artifacts.ts'
import { askProgress, open, putChunk, send } from './http.ts'

let service: TestService
let publisher: Publisher
const otherApps: App[] = []

beforeAll(async () => {
  service = await createTestService()
  publisher = await createPublisher(await service.createAccount())
})
afterAll(async () => await service.stop())
afterEach(async () => {
  for (const app of otherApps.splice(0)) await app.http.close()
})

/** A second instance on the same database and folder: the same URL at another port. */
async function startOtherInstance(): Promise<(url: string) => string> {
  const app = await buildApp(service.deps)
  otherApps.push(app)
  await app.http.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.http.server.address() as AddressInfo
  return (url) => Object.assign(new URL(url), { port }).href
}

/** A chunk of which only the first bytes arrive. The connection stays open. */
function putPart(url: string, bytes: Buffer, range: { from: number; to: number }, arrivingBytes: number) {
  const { from, to } = range
  const { request, answer } = open('PUT', url, {
    'content-range': `bytes ${from}-${to}/${bytes.length}`,
    'content-length': to - from + 1,
  })
  request.write(bytes.subarray(from, from + arrivingBytes))
  return { request, answer }
}

/** Until the service has stored what has arrived on a connection that is still open, or was just cut. */
async function waitForStored(key: string, bytes: number) {
  await vi.waitFor(async () => expect(await findReceivedBytes(service, key)).toBe(bytes), {
    timeout: 10_000,
    interval: 5,
  })
}

async function expectContent(arch: string, bytes: Buffer) {
  const { body } = await send('GET', await publisher.downloadUrl(arch))
  expect(body.equals(bytes)).toBe(true)
}

const stored = (bytes: number) => ({ status: 308, headers: expect.objectContaining({ range: `bytes=0-${bytes - 1}` }) })
const finished = { status: 200 }

describe('a resumable PUT', () => {
  it('takes chunks, says what is stored, and finishes with the last one', async () => {
    const bytes = randomBytes(1000)
    const { arch, url } = await publisher.registerRelease(bytes)
    expect(await putChunk(url, bytes, 0, 399)).toMatchObject(stored(400))
    expect(await putChunk(url, bytes, 400, 799)).toMatchObject(stored(800))
    expect(await publisher.listIds(arch)).toEqual([])
    expect(await putChunk(url, bytes, 800, 999)).toMatchObject(finished)
    await expectContent(arch, bytes)
  })

  it('takes a file in one chunk', async () => {
    const bytes = randomBytes(1000)
    const { arch, url } = await publisher.registerPatch(bytes)
    expect(await putChunk(url, bytes, 0, 999)).toMatchObject(finished)
    expect(arch).toBeDefined()
  })

  it('answers 308 without Range when nothing is stored', async () => {
    const bytes = randomBytes(1000)
    const { url } = await publisher.registerRelease(bytes)
    for (const answer of [await askProgress(url, 1000), await putChunk(url, bytes, 400, 999)]) {
      expect(answer.status).toBe(308)
      expect(answer.headers.range).toBeUndefined()
    }
  })

  it('skips what it has, repeats included, and does not jump over a gap', async () => {
    const bytes = randomBytes(1000)
    const { arch, url } = await publisher.registerRelease(bytes)
    expect(await putChunk(url, bytes, 0, 399)).toMatchObject(stored(400))
    expect(await putChunk(url, bytes, 0, 399)).toMatchObject(stored(400))
    expect(await putChunk(url, bytes, 100, 199)).toMatchObject(stored(400))
    expect(await putChunk(url, bytes, 401, 799)).toMatchObject(stored(400))
    expect(await putChunk(url, bytes, 200, 799)).toMatchObject(stored(800))
    expect(await askProgress(url, 1000)).toMatchObject(stored(800))
    expect(await putChunk(url, bytes, 0, 999)).toMatchObject(finished)
    await expectContent(arch, bytes)
  })

  it('ignores other bytes in place of those that are stored', async () => {
    const bytes = randomBytes(1000)
    const { arch, url } = await publisher.registerRelease(bytes)
    await putChunk(url, bytes, 0, 399)
    expect(await putChunk(url, randomBytes(1000), 0, 399)).toMatchObject(stored(400))
    expect(await putChunk(url, bytes, 400, 999)).toMatchObject(finished)
    await expectContent(arch, bytes)
  })

  it('answers 200 to any chunk and any question once it is finished', async () => {
    const bytes = randomBytes(1000)
    const { arch, url } = await publisher.registerRelease(bytes)
    await putChunk(url, bytes, 0, 999)
    expect(await putChunk(url, bytes, 0, 999)).toMatchObject(finished)
    expect(await putChunk(url, bytes, 800, 999)).toMatchObject(finished)
    expect(await askProgress(url, 1000)).toMatchObject(finished)
    await expectContent(arch, bytes)
  })

  it('refuses another total, a header that makes no sense, and a length that is not that of the range', async () => {
    const bytes = randomBytes(1000)
    const { url, key } = await publisher.registerRelease(bytes)
    const refused = { status: 400, code: 'invalid_request' }
    const put = (range: string, body: Buffer) => send('PUT', url, { headers: { 'content-range': range }, body })
    expect(await put('bytes 0-999/1001', bytes)).toMatchObject(refused)
    expect(await put('bytes */999', Buffer.alloc(0))).toMatchObject(refused)
    expect(await put('bytes 0-1000/1000', bytes)).toMatchObject(refused)
    expect(await put('everything', bytes)).toMatchObject(refused)
    expect(await put('bytes 0-99/1000', bytes)).toMatchObject(refused)
    expect(await findReceivedBytes(service, key)).toBe(0)
  })

  it('refuses what a chunk without Content-Length has too much, and keeps the rest', async () => {
    const bytes = randomBytes(1000)
    const { url } = await publisher.registerRelease(bytes)
    async function* tooMuch() {
      yield bytes.subarray(0, 500)
    }
    const headers = { 'content-range': 'bytes 0-399/1000' }
    expect(await send('PUT', url, { headers, body: tooMuch() })).toMatchObject({ status: 413 })
    expect(await askProgress(url, 1000)).toMatchObject(stored(400))
    expect(await putChunk(url, bytes, 400, 999)).toMatchObject(finished)
  })

  it('drops bytes with another hash and starts again', async () => {
    const bytes = randomBytes(1000)
    const { url, key } = await publisher.registerRelease(bytes)
    expect(await putChunk(url, randomBytes(1000), 0, 999)).toMatchObject({ status: 400, code: 'hash_mismatch' })
    expect(await listBlobFiles(service, key)).toEqual([])
    const answer = await askProgress(url, 1000)
    expect(answer.status).toBe(308)
    expect(answer.headers.range).toBeUndefined()
    expect(await putChunk(url, bytes, 0, 999)).toMatchObject(finished)
  })

  it('gives way to a whole upload at the same URL', async () => {
    const bytes = randomBytes(1000)
    const { arch, url } = await publisher.registerRelease(bytes)
    await putChunk(url, bytes, 0, 399)
    expect(await send('PUT', url, { body: bytes })).toMatchObject(finished)
    await expectContent(arch, bytes)
  })
})

describe('an interrupted upload', () => {
  it('keeps what arrived of a chunk that was cut', async () => {
    const bytes = randomBytes(300_000)
    const { arch, url, key } = await publisher.registerRelease(bytes)
    const { request } = putPart(url, bytes, { from: 0, to: 299_999 }, 100_000)
    await vi.waitFor(async () => expect(await listBlobFiles(service, key)).not.toEqual([]), { interval: 5 })
    request.socket?.end()
    await waitForStored(key, 100_000)
    expect(await askProgress(url, 300_000)).toMatchObject(stored(100_000))
    expect(await putChunk(url, bytes, 0, 299_999)).toMatchObject(finished)
    await expectContent(arch, bytes)
  })

  it('goes on after a restart of the service', async () => {
    const bytes = randomBytes(1000)
    const { arch, url } = await publisher.registerRelease(bytes)
    await putChunk(url, bytes, 0, 399)
    await service.restart()
    expect(await askProgress(url, 1000)).toMatchObject(stored(400))
    expect(await putChunk(url, bytes, 0, 799)).toMatchObject(stored(800))
    await service.restart()
    expect(await putChunk(url, bytes, 800, 999)).toMatchObject(finished)
    await service.restart()
    expect(await askProgress(url, 1000)).toMatchObject(finished)
    await expectContent(arch, bytes)
  })

  it('is completed by the next request when a crash came between the bytes and the row', async () => {
    const bytes = randomBytes(1000)
    const { arch, url, key } = await publisher.registerRelease(bytes)
    await putChunk(url, bytes, 0, 799)
    const source = [bytes.subarray(800)]
    await service.deps.blobs.write(key, { offset: 800, parts: [], source: toAsync(source) })
    await service.deps.blobs.finish(key, { sizeBytes: 1000, sha256: sha256(bytes), parts: [] })
    await service.deps.db.updateTable('blobs').set({ received_bytes: 1000 }).where('key', '=', key).execute()
    expect(await publisher.listIds(arch)).toEqual([])
    expect(await askProgress(url, 1000)).toMatchObject(finished)
    await expectContent(arch, bytes)
  })

  it('starts again when the store has lost the bytes', async () => {
    const bytes = randomBytes(1000)
    const { url, key } = await publisher.registerRelease(bytes)
    await service.deps.db.updateTable('blobs').set({ received_bytes: 1000 }).where('key', '=', key).execute()
    expect((await askProgress(url, 1000)).status).toBe(500)
    expect((await askProgress(url, 1000)).headers.range).toBeUndefined()
    expect(await putChunk(url, bytes, 0, 999)).toMatchObject(finished)
  })

  it('starts again when the store has lost the bytes before a chunk', async () => {
    const bytes = randomBytes(1000)
    const { arch, url, key } = await publisher.registerRelease(bytes)
    await service.deps.db.updateTable('blobs').set({ received_bytes: 500 }).where('key', '=', key).execute()
    const { status, headers } = await putChunk(url, bytes, 500, 999)
    expect({ status, range: headers.range }).toEqual({ status: 308, range: undefined })
    expect(await putChunk(url, bytes, 0, 999)).toMatchObject(finished)
    await expectContent(arch, bytes)
  })
})

describe('two requests for one upload', () => {
  it('lets the newer take over from one that hangs', async () => {
    const bytes = randomBytes(300_000)
    const { arch, url, key } = await publisher.registerRelease(bytes)
    const hanging = putPart(url, bytes, { from: 0, to: 199_999 }, 100_000)
    await vi.waitFor(async () => expect(await listBlobFiles(service, key)).not.toEqual([]), { interval: 5 })
    expect(await putChunk(url, bytes, 0, 199_999)).toMatchObject(stored(200_000))
    await expect(hanging.answer).rejects.toThrow()
    expect(await putChunk(url, bytes, 200_000, 299_999)).toMatchObject(finished)
    await expectContent(arch, bytes)
  })

  it('ends well for whole uploads that are sent at the same time', async () => {
    const bytes = randomBytes(300_000)
    const { arch, url } = await publisher.registerRelease(bytes)
    const answers = await Promise.allSettled([1, 2, 3, 4].map(() => send('POST', url, { body: bytes })))
    expect(answers.at(-1)).toMatchObject({ status: 'fulfilled', value: finished })
    await expectContent(arch, bytes)
  })

  it('ends well for the same chunks at two instances', async () => {
    const elsewhere = await startOtherInstance()
    const bytes = randomBytes(300_000)
    const { arch, url, key } = await publisher.registerRelease(bytes)
    const hanging = putPart(url, bytes, { from: 0, to: 199_999 }, 100_000)
    await vi.waitFor(async () => expect(await listBlobFiles(service, key)).not.toEqual([]), { interval: 5 })
    expect(await putChunk(elsewhere(url), bytes, 0, 199_999)).toMatchObject(stored(200_000))
    expect(await putChunk(elsewhere(url), bytes, 200_000, 249_999)).toMatchObject(stored(250_000))
    hanging.request.end(bytes.subarray(100_000, 200_000))
    // Its bytes are the same; the truth is what the other instance has reached.
    expect(await hanging.answer).toMatchObject(stored(250_000))
    expect(await putChunk(elsewhere(url), bytes, 250_000, 299_999)).toMatchObject(finished)
    expect(await askProgress(url, 300_000)).toMatchObject(finished)
    await expectContent(arch, bytes)
  })

  it('does not let an old request that dies take away what another instance finished', async () => {
    const elsewhere = await startOtherInstance()
    const bytes = randomBytes(300_000)
    const { arch, url, key } = await publisher.registerRelease(bytes)
    const { request } = open('POST', url, { 'content-length': bytes.length })
    request.write(bytes.subarray(0, 100_000))
    await vi.waitFor(async () => expect(await listBlobFiles(service, key)).not.toEqual([]), { interval: 5 })
    expect(await putChunk(elsewhere(url), bytes, 0, 299_999)).toMatchObject(finished)
    request.destroy()
    expect(await askProgress(url, 300_000)).toMatchObject(finished)
    await expectContent(arch, bytes)
  })
})

describe('any sequence of chunks over HTTP', () => {
  const position = fc.nat(99)
  const step = fc.record({ from: position, to: position, arriving: fc.option(position), question: fc.boolean() })

  it('ends as exactly the bytes, and no answer lies about what is stored', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
        const bytes = randomBytes(100)
        const { arch, url, key } = await publisher.registerRelease(bytes)
        let reached = 0
        for (const { from: a, to: b, arriving, question } of steps) {
          const [from, to] = [Math.min(a, b), Math.max(a, b)]
          if (question) {
            const { status, headers } = await askProgress(url, 100)
            expect(status).toBe(reached === 100 ? 200 : 308)
            if (status === 308) expect(headers.range).toBe(reached === 0 ? undefined : `bytes=0-${reached - 1}`)
          } else if (arriving === null || arriving > to - from) {
            const { status } = await putChunk(url, bytes, from, to)
            if (from <= reached) reached = Math.max(reached, to + 1)
            expect(status).toBe(reached === 100 ? 200 : 308)
          } else {
            const { request, answer } = putPart(url, bytes, { from, to }, arriving)
            await once(request, 'socket')
            request.destroy()
            await answer.catch(() => undefined)
            // How much of it got through is for the service to say, but never more than was sent.
            const { status } = await askProgress(url, 100)
            const now = (await findReceivedBytes(service, key)) ?? 0
            expect(now).toBeGreaterThanOrEqual(reached)
            expect(now).toBeLessThanOrEqual(Math.max(reached, from <= reached ? from + arriving : 0))
            expect(status).toBe(now === 100 ? 200 : 308)
            reached = now
          }
        }
        expect(await putChunk(url, bytes, 0, 99)).toMatchObject(finished)
        await expectContent(arch, bytes)
      }),
      { numRuns: 40 },
    )
  })
})

async function* toAsync(chunks: Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks
}
