import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { BlobStore } from '../../src/blobs/blob-store.ts'
import { copyBlob, type FinishedBlob, forEachBlob } from '../../src/blobs/copy-blob.ts'
import { createDiskBlobStore } from '../../src/blobs/disk-blob-store.ts'
import { openTestBlob, sha256 } from './test-blob.ts'

let dir: string
let from: BlobStore
let to: BlobStore

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'godwit-copy-'))
  from = await createDiskBlobStore({ dir: join(dir, 'from') })
  to = await createDiskBlobStore({ dir: join(dir, 'to') })
})
afterEach(async () => await rm(dir, { recursive: true, force: true }))

async function addBlob(bytes: Buffer, key = randomBytes(16).toString('hex')): Promise<FinishedBlob> {
  const blob = openTestBlob(from, key)
  await blob.write(0, bytes)
  await blob.finish(bytes.length)
  return { key, sizeBytes: bytes.length, sha256: sha256(bytes) }
}

describe('copying a blob to another store', () => {
  it('gives the same bytes, also none, and does nothing the second time', async () => {
    const bytes = randomBytes(300_000)
    const large = await addBlob(bytes)
    const empty = await addBlob(Buffer.alloc(0))
    expect(await copyBlob(from, to, large)).toBe(true)
    expect(await copyBlob(from, to, empty)).toBe(true)
    expect(await to.hash(large.key, { sizeBytes: large.sizeBytes, parts: [] })).toBe(sha256(bytes))
    expect(await openTestBlob(to, empty.key).read()).toBe('')
    expect(await copyBlob(from, to, large)).toBe(false)
  })

  it('does not keep bytes that have another hash', async () => {
    const blob = await addBlob(randomBytes(1000))
    await writeFile(join(dir, 'from', blob.key.slice(0, 2), blob.key.slice(2, 4), blob.key), randomBytes(1000))
    await expect(copyBlob(from, to, blob)).rejects.toThrow(`blob ${blob.key} has changed`)
    expect(await to.find(blob.key)).toBeUndefined()
  })

  it('says which blob is not there', async () => {
    const blob = { key: '00112233445566778899aabbccddeeff', sizeBytes: 5, sha256: '' }
    const blobs = (async function* () {
      yield blob
    })()
    await expect(forEachBlob(blobs, async (each) => void (await copyBlob(from, to, each)))).rejects.toThrow(
      `blob ${blob.key} has no bytes instead of 5`,
    )
  })
})

describe('listing a store', () => {
  it('gives the keys of the finished blobs in order', async () => {
    const keys = [
      'ff112233445566778899aabbccddeeff',
      '00ff2233445566778899aabbccddeeff',
      '00112233445566778899aabbccddee00',
    ]
    for (const key of keys) await addBlob(Buffer.from('x'), key)
    await openTestBlob(from, '00112233445566778899aabbccddeeaa').write(0, 'unfinished')
    const listed: string[] = []
    for await (const key of from.list()) listed.push(key)
    expect(listed).toEqual(keys.toSorted())
    for await (const _ of to.list()) expect.unreachable()
  })
})
