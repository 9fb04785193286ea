import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type BlobStore, BlobsUnavailableError } from '../../src/blobs/blob-store.ts'
import { createDiskBlobStore } from '../../src/blobs/disk-blob-store.ts'
import { createTestApp, createTestRelease, registerTestReleaseArtifact, upload } from '../support/publishing.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

const key = '0123456789abcdef'
const parts: string[] = []

async function* yieldBytes() {
  yield Buffer.from('bytes')
}

let folder: string
let dir: string
let blobs: BlobStore

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'godwit-detached-'))
  dir = join(folder, 'blobs')
  blobs = await createDiskBlobStore({ dir })
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function listKeys(): Promise<string[]> {
  const keys: string[] = []
  for await (const found of blobs.list()) keys.push(found)
  return keys
}

/** As a disk that is detached from its mount point. */
async function detach(from: string): Promise<void> {
  await rename(from, `${from}.detached`)
  await mkdir(from)
}

async function attach(to: string): Promise<void> {
  await rm(to, { recursive: true })
  await rename(`${to}.detached`, to)
}

describe('a folder of blobs whose disk is detached', () => {
  it('is unavailable to everything, and is what it was afterwards', async () => {
    await blobs.write(key, { offset: 0, parts, source: yieldBytes() })
    await detach(dir)
    const attempts = [
      blobs.write(key, { offset: 0, parts, source: yieldBytes() }),
      blobs.write(key, { offset: 5, parts, source: yieldBytes() }),
      blobs.hash(key, { sizeBytes: 5, parts }),
      blobs.finish(key, { sizeBytes: 5, sha256: '', parts }),
      blobs.find(key),
      blobs.discard(key, parts),
      blobs.remove(key),
      listKeys(),
      blobs.check(),
    ]
    for (const attempt of await Promise.allSettled(attempts)) {
      expect(attempt).toMatchObject({ status: 'rejected', reason: expect.any(BlobsUnavailableError) })
    }
    await attach(dir)
    await blobs.finish(key, { sizeBytes: 5, sha256: '', parts })
    expect((await blobs.find(key))?.sizeBytes).toBe(5)
    expect(await listKeys()).toEqual([key])
  })
})

describe('a service whose blobs are detached', () => {
  let service: TestService

  beforeEach(async () => {
    service = await createTestService()
  })
  afterEach(() => service.stop())

  it('answers uploads and downloads 503, and takes the upload up where it was when they are back', async () => {
    const account = await service.createAccount()
    const appId = await createTestApp(account)
    const releaseId = await createTestRelease(account.api, appId)
    const { artifact, bytes } = await registerTestReleaseArtifact(account.api, { appId, releaseId })
    const put = async (from: number, to: number) => {
      const headers = { 'content-range': `bytes ${from}-${to - 1}/${bytes.length}` }
      const body = new Uint8Array(bytes.subarray(from, to))
      const response = await fetch(artifact.url, { method: 'PUT', headers, body })
      return { status: response.status, range: response.headers.get('range') }
    }
    expect(await put(0, 600)).toEqual({ status: 308, range: 'bytes=0-599' })
    const blobsDir = join(service.dataDir, 'blobs')
    await detach(blobsDir)
    expect((await put(600, 1000)).status).toBe(503)
    expect((await put(0, 600)).status).not.toBe(200)
    await attach(blobsDir)
    expect((await put(600, 1000)).status).toBe(200)

    const { artifacts } = await account.api.listReleaseArtifacts({ params: { appId, releaseId } })
    const url = artifacts[0]?.url ?? ''
    await detach(blobsDir)
    const refused = await fetch(url)
    expect({ status: refused.status, hasRetryAfter: refused.headers.has('retry-after') }).toEqual({
      status: 503,
      hasRetryAfter: true,
    })
    await attach(blobsDir)
    expect(Buffer.from(await (await fetch(url)).arrayBuffer()).equals(bytes)).toBe(true)
    await upload(artifact.url, bytes)
  })
})
