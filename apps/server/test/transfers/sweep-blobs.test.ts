import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { insertBlob } from '../../src/transfers/queries.ts'
import { sweepBlobs } from '../../src/transfers/sweep-blobs.ts'
import { createTestService, type TestAccount, type TestService } from '../support/test-service.ts'
import { createPublisher, findReceivedBytes, listBlobFiles, type Publisher } from './artifacts.ts'
import { open, putChunk, send } from './http.ts'

const bytes = randomBytes(1000)
const arch = 'aarch64'

let service: TestService
let account: TestAccount
let publisher: Publisher
let now: Date | undefined

beforeAll(async () => {
  service = await createTestService({ clock: () => now ?? new Date() })
  account = await service.createAccount()
})
beforeEach(async () => {
  now = undefined
  publisher = await createPublisher(account)
})
afterAll(async () => await service.stop())

const tomorrow = () => new Date(Date.now() + 24 * 60 * 60 * 1000 + 1000)

async function expectGone(key: string) {
  expect(await findReceivedBytes(service, key)).toBeUndefined()
  expect(await listBlobFiles(service, key)).toEqual([])
}

describe('sweepBlobs', () => {
  it('removes replaced and refused artifacts, and leaves what is in use', async () => {
    const replaced = await publisher.registerRelease(bytes, { arch })
    await send('POST', replaced.url, { body: bytes })
    const other = randomBytes(1000)
    const refused = await publisher.registerRelease(other, { arch })
    const winner = await publisher.registerRelease(other, { arch })
    await send('POST', winner.url, { body: other })
    await send('POST', refused.url, { body: other })
    const waiting = await publisher.registerRelease(bytes)
    await putChunk(waiting.url, bytes, 0, 499)

    await sweepBlobs(service.deps)
    await expectGone(replaced.key)
    await expectGone(refused.key)
    expect(await send('GET', await publisher.downloadUrl(arch))).toMatchObject({ status: 200, body: other })
    expect(await putChunk(waiting.url, bytes, 500, 999)).toMatchObject({ status: 200 })
  })

  it('removes what belonged to a deleted app', async () => {
    const release = await publisher.registerRelease(bytes)
    const patch = await publisher.registerPatch(bytes)
    for (const { url } of [release, patch]) await send('POST', url, { body: bytes })
    await account.api.deleteApp({ params: { appId: publisher.appId } })
    await sweepBlobs(service.deps)
    await expectGone(release.key)
    await expectGone(patch.key)
  })

  it('removes registrations that have expired with what arrived of them, and nothing that is complete', async () => {
    const never = await publisher.registerRelease(bytes)
    const half = await publisher.registerPatch(bytes)
    await putChunk(half.url, bytes, 0, 499)
    const complete = await publisher.registerRelease(bytes, { arch })
    await send('POST', complete.url, { body: bytes })
    await sweepBlobs(service.deps)
    expect(await findReceivedBytes(service, half.key)).toBe(500)

    now = tomorrow()
    await sweepBlobs(service.deps)
    await expectGone(never.key)
    await expectGone(half.key)
    expect(await publisher.listIds(arch)).toEqual([complete.id])
    expect(await send('GET', await publisher.downloadUrl(arch))).toMatchObject({ status: 200, body: bytes })
  })

  it('takes away an upload that is still going on when it expires, which then answers 404', async () => {
    const { url, key } = await publisher.registerRelease(bytes)
    const { request, answer } = open('PUT', url, { 'content-length': 1000 })
    request.write(bytes.subarray(0, 500))
    await vi.waitFor(async () => expect(await listBlobFiles(service, key)).not.toEqual([]), { interval: 5 })
    now = tomorrow()
    await sweepBlobs(service.deps)
    request.end(bytes.subarray(500))
    expect(await answer).toMatchObject({ status: 404 })
    await expectGone(key)
  })

  it('goes on where a crash left the row without its bytes', async () => {
    const { url, key } = await publisher.registerRelease(bytes)
    await send('POST', url, { body: bytes })
    await account.api.deleteApp({ params: { appId: publisher.appId } })
    await service.deps.blobs.remove(key)
    expect(await sweepBlobs(service.deps)).toMatchObject({ removed: 1 })
    await expectGone(key)
  })

  it('removes any number, each once, also when two sweeps run at once', async () => {
    await sweepBlobs(service.deps)
    const expiresAt = tomorrow()
    for (let n = 0; n < 250; n += 1) {
      await insertBlob(service.deps.db, { key: randomBytes(16).toString('hex'), sizeBytes: 1, expiresAt })
    }
    const [one, two] = await Promise.all([sweepBlobs(service.deps), sweepBlobs(service.deps)])
    expect(one.removed + two.removed).toBe(250)
    expect(await sweepBlobs(service.deps)).toMatchObject({ removed: 0 })
  })
})
