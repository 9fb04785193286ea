import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rm, symlink } from 'node:fs/promises'
import { Agent } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestService, type TestService } from '../support/test-service.ts'
import { createPublisher, findReceivedBytes, listBlobFiles, type Publisher, sha256 } from './artifacts.ts'
import { type Answer, open, putChunk, send, toForm } from './http.ts'

let service: TestService
let publisher: Publisher
let now: Date | undefined

beforeAll(async () => {
  service = await createTestService({ clock: () => now ?? new Date() })
  publisher = await createPublisher(await service.createAccount())
})
afterAll(async () => await service.stop())

const toFileForm = (bytes: Buffer) => toForm([{ name: 'file', filename: 'app.aab', bytes }])

/** A body without Content-Length. */
async function* inPieces(bytes: Buffer, size = 1000): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

const methods: [string, (url: string, bytes: Buffer) => Promise<Answer>][] = [
  ['a multipart POST', (url, bytes) => send('POST', url, toFileForm(bytes))],
  ['a raw POST', (url, bytes) => send('POST', url, { body: bytes })],
  ['a raw PUT', (url, bytes) => send('PUT', url, { body: bytes })],
  ['a raw POST without Content-Length', (url, bytes) => send('POST', url, { body: inPieces(bytes) })],
]

describe.each(methods)('%s', (_name, upload) => {
  it('stores a release artifact, which can then be downloaded', async () => {
    const bytes = randomBytes(200_000)
    const { id, arch, url } = await publisher.registerRelease(bytes)
    expect(await publisher.listIds(arch)).toEqual([])
    expect(await upload(url, bytes)).toMatchObject({ status: 200 })
    expect(await publisher.listIds(arch)).toEqual([id])
    const download = await send('GET', await publisher.downloadUrl(arch))
    expect(download.body.equals(bytes)).toBe(true)
  })

  it('refuses one byte too many and keeps nothing', async () => {
    const bytes = randomBytes(100_000)
    const { url, key } = await publisher.registerRelease(bytes)
    expect(await upload(url, Buffer.concat([bytes, Buffer.from('x')]))).toMatchObject({
      status: 413,
      code: 'payload_too_large',
    })
    expect(await findReceivedBytes(service, key)).toBe(0)
    expect(await listBlobFiles(service, key)).toEqual([])
    expect(await upload(url, bytes)).toMatchObject({ status: 200 })
  })

  it('refuses one byte too few and keeps nothing', async () => {
    const bytes = randomBytes(100_000)
    const { url, key } = await publisher.registerRelease(bytes)
    expect(await upload(url, bytes.subarray(1))).toMatchObject({ status: 400, code: 'size_mismatch' })
    expect(await upload(url, Buffer.alloc(0))).toMatchObject({ status: 400, code: 'size_mismatch' })
    expect(await findReceivedBytes(service, key)).toBe(0)
    expect(await listBlobFiles(service, key)).toEqual([])
    expect(await upload(url, bytes)).toMatchObject({ status: 200 })
  })

  it('refuses other bytes of the same size, and takes the right ones at the same URL', async () => {
    const bytes = randomBytes(1000)
    const { url, key } = await publisher.registerRelease(bytes)
    expect(await upload(url, randomBytes(1000))).toMatchObject({ status: 400, code: 'hash_mismatch' })
    expect(await findReceivedBytes(service, key)).toBe(0)
    expect(await listBlobFiles(service, key)).toEqual([])
    expect(await upload(url, bytes)).toMatchObject({ status: 200 })
  })

  it('answers 200 to a repeat of the same bytes, and a conflict to others', async () => {
    const bytes = randomBytes(1000)
    const release = await publisher.registerRelease(bytes)
    const patch = await publisher.registerPatch(bytes)
    for (const { url } of [release, patch]) {
      expect(await upload(url, bytes)).toMatchObject({ status: 200 })
      expect(await upload(url, bytes)).toMatchObject({ status: 200 })
    }
    for (const others of [randomBytes(1000), randomBytes(10), randomBytes(2000)]) {
      expect(await upload(release.url, others)).toMatchObject({ status: 409, code: 'artifact_exists' })
      expect(await upload(patch.url, others)).toMatchObject({
        status: 409,
        code: 'patch_artifacts_create_existing_artifact_hash_mismatch',
      })
    }
    const download = await send('GET', await publisher.downloadUrl(release.arch))
    expect(download.body.equals(bytes)).toBe(true)
  })
})

describe('multipart/form-data', () => {
  it('takes the part named file, with or without a file name, among others', async () => {
    const bytes = randomBytes(70_000)
    for (const filename of ['app.aab', undefined]) {
      const { url } = await publisher.registerRelease(bytes)
      const form = toForm([
        { name: 'note', bytes: Buffer.from('hello') },
        { name: 'other', filename: 'other.bin', bytes: randomBytes(50_000) },
        { name: 'file', ...(filename === undefined ? {} : { filename }), bytes },
        { name: 'file', filename: 'second.bin', bytes: randomBytes(50_000) },
        { name: 'more', bytes: Buffer.from('bye') },
      ])
      expect(await send('POST', url, form)).toMatchObject({ status: 200 })
    }
  })

  it('names the part that is missing', async () => {
    const { url, key } = await publisher.registerRelease(randomBytes(10))
    const answer = await send('POST', url, toForm([{ name: 'artifact', filename: 'a', bytes: randomBytes(10) }]))
    expect(answer).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(JSON.parse(answer.body.toString()).details).toContain('file')
    expect(await listBlobFiles(service, key)).toEqual([])
  })

  it('refuses a form that ends early, has no boundary, or is none', async () => {
    const bytes = randomBytes(100_000)
    const { url } = await publisher.registerRelease(bytes)
    const form = toFileForm(bytes)
    const refused = { status: 400, code: 'invalid_request' }
    expect(await send('POST', url, { ...form, body: form.body.subarray(0, -50_000) })).toMatchObject(refused)
    expect(await send('POST', url, { ...form, body: randomBytes(1000) })).toMatchObject(refused)
    expect(await send('POST', url, { ...form, body: Buffer.alloc(0) })).toMatchObject(refused)
    const headers = { 'content-type': 'multipart/form-data' }
    expect(await send('POST', url, { headers, body: form.body })).toMatchObject(refused)
    expect(await send('POST', url, form)).toMatchObject({ status: 200 })
  })
})

describe('the signature of an upload URL', () => {
  it('is all that is needed: a bearer token along with it is ignored', async () => {
    const bytes = randomBytes(10)
    const { url } = await publisher.registerRelease(bytes)
    const headers = { authorization: 'Bearer sb_api_wrong', 'x-version': '0.9.0+1' }
    expect(await send('POST', url, { headers, body: bytes })).toMatchObject({ status: 200 })
  })

  it('expires', async () => {
    const bytes = randomBytes(10)
    const { url } = await publisher.registerRelease(bytes)
    now = new Date(Date.now() + 25 * 60 * 60 * 1000)
    expect(await send('POST', url, { body: bytes })).toMatchObject({ status: 410, code: 'upload_expired' })
    now = undefined
    expect(await send('POST', url, { body: bytes })).toMatchObject({ status: 200 })
  })

  it('cannot be changed, left out, or taken from elsewhere', async () => {
    const bytes = randomBytes(10)
    const { url, key } = await publisher.registerRelease(bytes)
    const other = await publisher.registerRelease(bytes)
    const refused = { status: 403, code: 'invalid_signature' }
    expect(await send('POST', `${url}x`, { body: bytes })).toMatchObject(refused)
    expect(await send('POST', url.replace(/expires=\d+/, 'expires=99999999999'), { body: bytes })).toMatchObject(
      refused,
    )
    expect(await send('POST', url.replace(key, other.key), { body: bytes })).toMatchObject(refused)
    expect(await send('POST', service.deps.urls.sign('download', key).replace('downloads', 'uploads'))).toMatchObject(
      refused,
    )
    expect(await send('POST', url.replace(/\?.*/, ''))).toMatchObject({ status: 400, code: 'invalid_request' })
  })

  it('does not bring back an artifact that has been deleted', async () => {
    const url = service.deps.urls.sign('upload', '0'.repeat(32), new Date(Date.now() + 60_000))
    for (const method of ['POST', 'PUT']) {
      expect(await send(method, url, { body: randomBytes(10) })).toMatchObject({ status: 404, code: 'not_found' })
    }
  })
})

describe('the hash of an artifact', () => {
  it('may be registered in upper case', async () => {
    const bytes = randomBytes(10)
    const { url } = await publisher.registerRelease(bytes, { hash: sha256(bytes).toUpperCase() })
    expect(await send('POST', url, { body: bytes })).toMatchObject({ status: 200 })
  })

  it('is not that of the bytes of a patch, and not verified for them', async () => {
    const bytes = randomBytes(1000)
    const { url } = await publisher.registerPatch(bytes, { hash: 'AB'.repeat(32) })
    expect(await send('POST', url, toFileForm(bytes))).toMatchObject({ status: 200 })
  })
})

describe('an answer before the end of the body', () => {
  it('comes at once when Content-Length says that the body is too large', async () => {
    const { url } = await publisher.registerRelease(randomBytes(10))
    const { request, answer } = open('PUT', url, { 'content-length': 11 })
    request.flushHeaders()
    expect(await answer).toMatchObject({ status: 413 })
    request.destroy()
  })

  it('reaches a client that sends everything before it listens', async () => {
    const { url } = await publisher.registerRelease(randomBytes(10))
    const { hostname, port, pathname, search } = new URL(url)
    const socket = connect(Number(port), hostname)
    const body = Buffer.alloc(20_000_000)
    socket.pause()
    socket.write(`PUT ${pathname}${search} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-length: ${body.length}\r\n`)
    socket.write('connection: close\r\n\r\n')
    await new Promise((resolve) => socket.write(body, resolve))
    expect(await text(socket)).toContain('HTTP/1.1 413')
  })

  it('reaches a client that is in the middle of a body without a known length', async () => {
    const { url } = await publisher.registerRelease(randomBytes(10))
    const large = Buffer.alloc(20_000_000)
    const tooLarge = { status: 413, code: 'payload_too_large' }
    expect(await send('POST', url, { body: inPieces(large, 100_000) })).toMatchObject(tooLarge)
    expect(await send('POST', url, toFileForm(large))).toMatchObject(tooLarge)
  })

  it('leaves the connection to the next request', async () => {
    const bytes = randomBytes(1_000_000)
    const { url } = await publisher.registerRelease(bytes)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const put = async (to: string) => {
      const { request, answer } = open('PUT', to, { 'content-length': bytes.length }, agent)
      request.end(bytes)
      return { answer: await answer, wasReused: request.reusedSocket }
    }
    expect(await put(`${url}x`)).toMatchObject({ answer: { status: 403 }, wasReused: false })
    expect(await put(url)).toMatchObject({ answer: { status: 200 }, wasReused: true })
    agent.destroy()
  })

  it('is followed by the end of the connection when the body has no end', async () => {
    const { url } = await publisher.registerRelease(randomBytes(10))
    const { hostname, port, pathname, search } = new URL(url)
    const socket = connect(Number(port), hostname)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => undefined)
    socket.resume()
    socket.write(`PUT ${pathname}${search} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-length: 99999999999\r\n\r\n`)
    const piece = Buffer.alloc(1_000_000)
    let sent = 0
    while (!socket.destroyed) {
      await Promise.race([closed, new Promise((resolve) => socket.write(piece, resolve))])
      sent += piece.length
    }
    await closed
    expect(sent).toBeLessThan(200_000_000)
  })
})

describe.skipIf(!existsSync('/dev/full'))('a full disk', () => {
  it('fails the upload and leaves nothing of it', async () => {
    const bytes = randomBytes(1000)
    const { url, key } = await publisher.registerRelease(bytes)
    const folder = join(service.dataDir, 'blobs', key.slice(0, 2), key.slice(2, 4))
    for (const attempt of [() => send('POST', url, { body: bytes }), () => putChunk(url, bytes, 0, 999)]) {
      await mkdir(folder, { recursive: true })
      await symlink('/dev/full', join(folder, `${key}.part`))
      expect(await attempt()).toMatchObject({ status: 503, code: 'unavailable' })
      expect(await findReceivedBytes(service, key)).toBe(0)
      await rm(join(folder, `${key}.part`), { force: true })
    }
    expect(await send('POST', url, { body: bytes })).toMatchObject({ status: 200 })
  })
})

describe('a large upload', () => {
  it('takes constant memory', { timeout: 120_000 }, async () => {
    const piece = randomBytes(1_000_000)
    const count = 200
    const hash = createHash('sha256')
    for (let n = 0; n < count; n += 1) hash.update(piece)
    let mostBytes = 0
    async function* generate() {
      for (let n = 0; n < count; n += 1) {
        mostBytes = Math.max(mostBytes, process.memoryUsage.rss())
        yield piece
      }
    }
    const size = piece.length * count
    const { url } = await publisher.registerRelease(piece, { hash: hash.digest('hex'), size })
    const startBytes = process.memoryUsage.rss()
    expect(await send('PUT', url, { body: generate(), headers: { 'content-length': size } })).toMatchObject({
      status: 200,
    })
    expect(mostBytes - startBytes).toBeLessThan(120_000_000)
  })
})
