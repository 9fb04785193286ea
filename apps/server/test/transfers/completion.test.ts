import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { finishUpload } from '../../src/transfers/finish-upload.ts'
import { createTestService, type TestService } from '../support/test-service.ts'
import { createPublisher, listBlobFiles, type Publisher, sha256 } from './artifacts.ts'
import { send } from './http.ts'

let service: TestService
let publisher: Publisher

beforeAll(async () => {
  service = await createTestService()
})
beforeEach(async () => {
  publisher = await createPublisher(await service.createAccount())
})
afterAll(async () => await service.stop())

const arch = 'aarch64'
const upload = (url: string, body: Buffer) => send('POST', url, { body })
const nowhere = { address: undefined, userAgent: undefined, correlationId: undefined }

async function findDeviceVersion(): Promise<number> {
  const { device_version } = await service.deps.db
    .selectFrom('apps')
    .select('device_version')
    .where('id', '=', publisher.appId)
    .executeTakeFirstOrThrow()
  return device_version
}

describe('a release artifact whose bytes have arrived', () => {
  const [first, second] = [randomBytes(1000), randomBytes(1000)]

  it('replaces the one that is there while the platform is a draft, under an id of its own', async () => {
    await publisher.setStatus('draft')
    const old = await publisher.registerRelease(first, { arch })
    await upload(old.url, first)
    const next = await publisher.registerRelease(second, { arch })
    expect(await publisher.listIds(arch)).toEqual([old.id])
    expect(await upload(next.url, second)).toMatchObject({ status: 200 })
    expect(await publisher.listIds(arch)).toEqual([next.id])
    expect((await send('GET', await publisher.downloadUrl(arch))).body.equals(second)).toBe(true)
    expect(await upload(old.url, first)).toMatchObject({ status: 404 })
  })

  it('does not replace what was registered after it', async () => {
    const early = await publisher.registerRelease(first, { arch })
    const late = await publisher.registerRelease(second, { arch })
    expect(await upload(late.url, second)).toMatchObject({ status: 200 })
    expect(await upload(early.url, first)).toMatchObject({ status: 409, code: 'artifact_exists' })
    expect(await publisher.listIds(arch)).toEqual([late.id])
  })

  it('does not replace anything once the platform is active', async () => {
    const old = await publisher.registerRelease(first, { arch })
    const next = await publisher.registerRelease(second, { arch })
    await upload(old.url, first)
    await publisher.setStatus('active')
    expect(await upload(next.url, second)).toMatchObject({ status: 409, code: 'artifact_exists' })
    expect(await upload(next.url, second)).toMatchObject({ status: 404 })
    expect(await upload(old.url, first)).toMatchObject({ status: 200 })
    expect(await publisher.listIds(arch)).toEqual([old.id])
  })

  it('completes what is missing of an active platform', async () => {
    await publisher.setStatus('active')
    const { id, url } = await publisher.registerRelease(first, { arch })
    expect(await upload(url, first)).toMatchObject({ status: 200 })
    expect(await publisher.listIds(arch)).toEqual([id])
  })

  it('is one of several that arrive together: the last registered', async () => {
    const all = [randomBytes(10), randomBytes(10), randomBytes(10), randomBytes(10)]
    const registered = []
    for (const bytes of all) registered.push({ bytes, ...(await publisher.registerRelease(bytes, { arch })) })
    const answers = await Promise.all(registered.map(({ url, bytes }) => upload(url, bytes)))
    for (const { status } of answers) expect([200, 409]).toContain(status)
    expect(await publisher.listIds(arch)).toEqual([registered.at(-1)?.id])
  })

  it('is one of several that arrive together when the platform is active: the first to be complete', async () => {
    const registered = []
    for (const bytes of [first, second])
      registered.push({ bytes, ...(await publisher.registerRelease(bytes, { arch })) })
    await publisher.setStatus('active')
    const answers = await Promise.all(registered.map(({ url, bytes }) => upload(url, bytes)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    expect(await publisher.listIds(arch)).toHaveLength(1)
  })

  it('is complete at once when it is empty, because a client then sends nothing', async () => {
    const { id, url } = await publisher.registerRelease(Buffer.alloc(0), { arch })
    expect(await publisher.listIds(arch)).toEqual([id])
    expect((await send('GET', await publisher.downloadUrl(arch))).body).toHaveLength(0)
    expect(await upload(url, Buffer.alloc(0))).toMatchObject({ status: 200 })
    const headers = { 'content-range': 'bytes */0' }
    expect(await send('PUT', url, { headers })).toMatchObject({ status: 200 })
  })

  it('changes nothing that devices are offered', async () => {
    const before = await findDeviceVersion()
    await upload((await publisher.registerRelease(first)).url, first)
    expect(await findDeviceVersion()).toBe(before)
  })

  it('remembers the hash of its bytes', async () => {
    const { key, url } = await publisher.registerRelease(first)
    await upload(url, first)
    const blob = await service.deps.db.selectFrom('blobs').selectAll().where('key', '=', key).executeTakeFirstOrThrow()
    expect(blob).toMatchObject({ sha256: sha256(first), received_bytes: first.length })
  })

  it('may be completed again without a difference', async () => {
    const { id, key, url } = await publisher.registerRelease(first, { arch })
    await upload(url, first)
    await finishUpload(service.deps, key, nowhere)
    expect(await publisher.listIds(arch)).toEqual([id])
  })
})

describe('a patch artifact whose bytes have arrived', () => {
  const [first, second] = [randomBytes(1000), randomBytes(1000)]

  it('changes what devices are offered', async () => {
    const { url } = await publisher.registerPatch(first, { arch })
    const before = await findDeviceVersion()
    expect(await upload(url, first)).toMatchObject({ status: 200 })
    expect(await findDeviceVersion()).toBe(before + 1)
  })

  it('is never replaced, and the conflict says whether the hashes differ', async () => {
    const winner = await publisher.registerPatch(first, { arch })
    const same = await publisher.registerPatch(first, { arch, hash: winner.hash })
    const other = await publisher.registerPatch(second, { arch, hash: sha256(second) })
    expect(await upload(winner.url, first)).toMatchObject({ status: 200 })
    expect(await upload(same.url, first)).toMatchObject({
      status: 409,
      code: 'patch_artifacts_create_existing_artifact',
    })
    expect(await upload(other.url, second)).toMatchObject({
      status: 409,
      code: 'patch_artifacts_create_existing_artifact_hash_mismatch',
    })
    expect(await upload(winner.url, first)).toMatchObject({ status: 200 })
  })

  it('is one of two that arrive together', async () => {
    const one = await publisher.registerPatch(first, { arch })
    const two = await publisher.registerPatch(first, { arch })
    const answers = await Promise.all([upload(one.url, first), upload(two.url, first)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  })
})

describe('after a crash between making the bytes final and saying so', () => {
  /** What is left then: the final file, and a row that knows only how many bytes arrived. */
  async function undoCommit(key: string) {
    const { db } = service.deps
    await db.updateTable('patch_artifacts').set({ uploaded_at: null }).where('blob_key', '=', key).execute()
    await db.updateTable('blobs').set({ sha256: null }).where('key', '=', key).execute()
  }

  it('the same bytes again complete the artifact, and other bytes are refused', async () => {
    for (const again of [true, false]) {
      const bytes = randomBytes(1000)
      const { url, key } = await publisher.registerPatch(bytes)
      await upload(url, bytes)
      await undoCommit(key)
      const answer = await upload(url, again ? bytes : randomBytes(1000))
      if (again) expect(answer.status).toBe(200)
      else expect(answer).toMatchObject({ status: 409, code: 'patch_artifacts_create_existing_artifact_hash_mismatch' })
      const stored = await send('GET', service.deps.urls.sign('download', key))
      expect(stored.body.equals(bytes)).toBe(true)
      expect(await listBlobFiles(service, key)).toEqual([key])
    }
  })
})
