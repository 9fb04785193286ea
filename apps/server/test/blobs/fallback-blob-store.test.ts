import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type BlobStore, BlobsUnavailableError } from '../../src/blobs/blob-store.ts'
import { createDiskBlobStore } from '../../src/blobs/disk-blob-store.ts'
import { withFallback } from '../../src/blobs/fallback-blob-store.ts'
import { openTestBlob, sha256 } from './test-blob.ts'

let dir: string
let first: BlobStore
let second: BlobStore
let blobs: BlobStore

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'godwit-blobs-'))
  first = await createDiskBlobStore({ dir: join(dir, 'first') })
  second = await createDiskBlobStore({ dir: join(dir, 'second') })
  blobs = withFallback(first, second)
})
afterEach(async () => await rm(dir, { recursive: true }))

const toKey = (n: number) => String(n).padStart(16, '0')

async function store(where: BlobStore, key: string, text: string): Promise<void> {
  const blob = openTestBlob(where, key)
  await blob.write(0, text)
  await blob.finish(text.length)
}

describe('a store with a fallback', () => {
  it('reads of the first, and of the second what the first lacks', async () => {
    await store(first, toKey(1), 'first')
    await store(second, toKey(1), 'second')
    await store(second, toKey(2), 'second')
    expect(await openTestBlob(blobs, toKey(1)).read()).toBe('first')
    expect(await openTestBlob(blobs, toKey(2)).read()).toBe('second')
    expect(await blobs.find(toKey(3))).toBeUndefined()
  })

  it('reads of the second while the first is away, and says so when that has nothing', async () => {
    const away = async () => {
      throw new BlobsUnavailableError('away')
    }
    blobs = withFallback({ ...first, find: away }, second)
    await store(second, toKey(1), 'second')
    expect(await openTestBlob(blobs, toKey(1)).read()).toBe('second')
    await expect(blobs.find(toKey(2))).rejects.toThrow(BlobsUnavailableError)
  })

  it('stores in the first, and finishes what a crash left finished in the second', async () => {
    await store(blobs, toKey(1), 'hello')
    expect(await openTestBlob(first, toKey(1)).read()).toBe('hello')
    expect(await second.find(toKey(1))).toBeUndefined()
    await store(second, toKey(2), 'hello')
    const finished = { sizeBytes: 5, sha256: sha256('hello'), parts: [] }
    expect(await blobs.hash(toKey(2), finished)).toBe(sha256('hello'))
    await blobs.finish(toKey(2), finished)
    expect(await openTestBlob(blobs, toKey(2)).read()).toBe('hello')
  })

  it('does not count what the second has of an unfinished upload', async () => {
    await openTestBlob(second, toKey(1)).write(0, 'hello')
    expect(await blobs.hash(toKey(1), { sizeBytes: 5, parts: [] })).toBeUndefined()
  })

  it('lists what either has, once and in order, and removes from both', async () => {
    for (const n of [1, 3, 5, 6]) await store(first, toKey(n), 'x')
    for (const n of [0, 3, 4, 6, 7, 8]) await store(second, toKey(n), 'x')
    const list = async () => {
      const keys: string[] = []
      for await (const key of blobs.list()) keys.push(key)
      return keys
    }
    expect(await list()).toEqual([0, 1, 3, 4, 5, 6, 7, 8].map(toKey))
    await blobs.remove(toKey(3))
    expect(await list()).toEqual([0, 1, 4, 5, 6, 7, 8].map(toKey))
    expect(await second.find(toKey(3))).toBeUndefined()
  })
})
