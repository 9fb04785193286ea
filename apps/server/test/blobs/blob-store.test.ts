import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type BlobStore, LostBytesError } from '../../src/blobs/blob-store.ts'
import { createDiskBlobStore } from '../../src/blobs/disk-blob-store.ts'
import { createS3BlobStore } from '../../src/blobs/s3/s3-blob-store.ts'
import { noS3Server, startS3Server, toLocation } from '../support/s3-server.ts'
import { openTestBlob, sha256, type TestBlob, yieldPieces } from './test-blob.ts'

type Kept = {
  open: () => Promise<BlobStore>
  /** What is kept under a key, finished or not, as the names of files or objects. */
  list: (key: string) => Promise<string[]>
  remove: () => Promise<void>
}

async function keepOnDisk(): Promise<Kept> {
  const dir = await mkdtemp(join(tmpdir(), 'godwit-blobs-'))
  return {
    open: async () => await createDiskBlobStore({ dir }),
    list: async (key) => (await readdir(dir, { recursive: true })).filter((name) => name.includes(key)),
    remove: async () => await rm(dir, { recursive: true }),
  }
}

async function keepInBucket(): Promise<Kept> {
  const server = await startS3Server()
  const { location } = toLocation(server.newBlobsSetting())
  return {
    open: async () => createS3BlobStore({ location, cdnUrl: undefined, isProxied: false }),
    list: async (key) => (await server.listObjects(location.prefix)).filter((name) => name.includes(key)),
    remove: server.remove,
  }
}

const places: { name: string; keep: () => Promise<Kept>; isSkipped: boolean }[] = [
  { name: 'the disk blob store', keep: keepOnDisk, isSkipped: false },
  { name: 'the S3 blob store', keep: keepInBucket, isSkipped: noS3Server !== undefined },
]

describe.for(places)('$name', ({ keep, isSkipped }) => {
  if (isSkipped) {
    it.skip(`is not tested: ${noS3Server}`)
    return
  }
  let kept: Kept
  let blobs: BlobStore
  let key: string
  let blob: TestBlob

  beforeAll(async () => {
    kept = await keep()
    blobs = await kept.open()
  })
  beforeEach(() => {
    key = randomBytes(16).toString('hex')
    blob = openTestBlob(blobs, key)
  })
  afterAll(async () => await kept?.remove())

  it('reads a finished blob as it was written, whole and in parts', async () => {
    expect(await blob.write(0, 'hello ', 'world')).toEqual({ writtenBytes: 11, failure: undefined })
    await blob.finish(11)
    expect((await blobs.find(key))?.sizeBytes).toBe(11)
    expect(await blob.read()).toBe('hello world')
    expect(await blob.read({ start: 4, end: 6 })).toBe('o w')
  })

  it('does not show an unfinished blob', async () => {
    await blob.write(0, 'hello')
    expect(await blobs.find(key)).toBeUndefined()
  })

  it('keeps what arrived before the source failed, and says how much', async () => {
    const failure = new Error('connection lost')
    expect(await blob.write(0, 'hello', failure)).toEqual({ writtenBytes: 5, failure })
    expect(await blob.write(5, failure)).toEqual({ writtenBytes: 0, failure })
    expect(await blob.write(5, ' world')).toEqual({ writtenBytes: 6, failure: undefined })
    await blob.finish(11)
    expect(await blob.read()).toBe('hello world')
  })

  it('takes the same bytes again at any place', async () => {
    await blob.write(0, 'hello world')
    await blob.write(3, 'lo world')
    await blob.write(0, 'hello world')
    await blob.finish(11)
    expect(await blob.read()).toBe('hello world')
  })

  it('goes on after it was opened anew', async () => {
    await blob.write(0, 'hello')
    blobs = await kept.open()
    await blob.write(5, ' world')
    expect(await blob.hash(11)).toBe(sha256('hello world'))
  })

  it('refuses to leave a hole', async () => {
    await expect(blob.write(5, 'world')).rejects.toThrow(LostBytesError)
    await blob.write(0, 'hell')
    await expect(blob.write(5, 'world')).rejects.toThrow(LostBytesError)
  })

  it('hashes finished and unfinished blobs, and tells when bytes are missing', async () => {
    expect(await blob.hash(5)).toBeUndefined()
    await blob.write(0, 'hello')
    expect(await blob.hash(5)).toBe(sha256('hello'))
    expect(await blob.hash(6)).toBeUndefined()
    await blob.finish(5)
    expect(await blob.hash(5)).toBe(sha256('hello'))
    expect(await blob.hash(6)).toBeUndefined()
  })

  it('finishes only at the exact size, as often as asked, and leaves nothing beside the blob', async () => {
    await blob.write(0, 'hello')
    await expect(blob.finish(6)).rejects.toThrow('5 bytes instead of 6')
    await expect(blob.finish(4)).rejects.toThrow('5 bytes instead of 4')
    expect(await blobs.find(key)).toBeUndefined()
    await blob.finish(5)
    await blob.finish(5)
    expect(await blob.read()).toBe('hello')
    expect(await kept.list(key)).toHaveLength(1)
  })

  it('has empty blobs, for which nothing is ever written', async () => {
    expect(await blob.hash(0)).toBe(sha256(''))
    await blob.finish(0)
    await blob.finish(0)
    expect(await blob.read()).toBe('')
  })

  it('discards an unfinished blob and leaves a finished one', async () => {
    await blob.write(0, 'hello')
    await blob.discard()
    await blob.discard()
    expect(await kept.list(key)).toEqual([])
    const again = openTestBlob(blobs, key)
    await again.write(0, 'hello')
    await again.finish(5)
    await again.discard()
    expect(await again.read()).toBe('hello')
  })

  it('removes what there is, and nothing without complaint', async () => {
    await blobs.remove(key)
    await blob.write(0, 'hello')
    await blobs.remove(key)
    expect(await kept.list(key)).toEqual([])
    const again = openTestBlob(blobs, key)
    await again.write(0, 'hello')
    await again.finish(5)
    await blobs.remove(key)
    expect(await kept.list(key)).toEqual([])
    expect(await blobs.find(key)).toBeUndefined()
  })

  it('lists the keys of finished blobs, in order', async () => {
    const keys = Array.from({ length: 5 }, () => randomBytes(16).toString('hex'))
    for (const each of keys) {
      const listed = openTestBlob(blobs, each)
      await listed.write(0, 'x')
      await listed.finish(1)
    }
    await blob.write(0, 'unfinished')
    const all: string[] = []
    for await (const each of blobs.list()) all.push(each)
    expect(all.filter((each) => keys.includes(each))).toEqual(keys.toSorted())
    expect(all).not.toContain(key)
  })

  it.each(['', 'short', '../../../etc/passwd', 'AABBCCDDEEFF', '0011/2233445566', '00112233\0'])(
    'takes no key that is not its own: %j',
    async (wrong) => {
      const refused = 'not the key of a blob'
      const write = blobs.write(wrong, { offset: 0, parts: [], source: yieldPieces(['x']) })
      await expect(write).rejects.toThrow(refused)
      await expect(blobs.find(wrong)).rejects.toThrow(refused)
      await expect(blobs.remove(wrong)).rejects.toThrow(refused)
      await expect(blobs.discard(wrong, ['x'])).rejects.toThrow(refused)
      await expect(blobs.hash(wrong, { sizeBytes: 1, parts: ['x'] })).rejects.toThrow(refused)
    },
  )

  it('says that it can be used', async () => {
    await expect(blobs.check()).resolves.toBeUndefined()
  })
})
