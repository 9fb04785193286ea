import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type BlobCache, createBlobCache } from '../../src/blobs/blob-cache.ts'
import type { StoredBlob } from '../../src/blobs/blob-store.ts'

const maxBytes = 10_000
const log = pino({ level: 'silent' })

let dir: string
let cache: BlobCache

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'godwit-cache-'))
  cache = await createBlobCache({ dir, maxBytes, log })
})
afterEach(async () => await rm(dir, { recursive: true }))

const newKey = () => randomBytes(16).toString('hex')
const toBlob = (bytes: Buffer, sizeBytes = bytes.length): StoredBlob => ({
  sizeBytes,
  read: async ({ start, end }) => Readable.from([bytes.subarray(start, end + 1)]),
  locate: async () => undefined,
})
/** Files get their time from the test: those that are made within a millisecond are of one age. */
async function fill(key: string, bytes: Buffer, ageMinutes: number): Promise<void> {
  cache.fill(key, toBlob(bytes))
  await expect.poll(() => readdir(dir)).toContain(key)
  const at = new Date(Date.now() - ageMinutes * 60_000)
  await utimes(join(dir, key), at, at)
}

describe('the cache of blobs', () => {
  it('gives back what it was given, and forgets what it is told to', async () => {
    const [key, bytes] = [newKey(), randomBytes(1000)]
    expect(await cache.find(key)).toBeUndefined()
    await fill(key, bytes, 0)
    const found = await cache.find(key)
    expect(found?.sizeBytes).toBe(1000)
    expect(await buffer((await found?.read({ start: 10, end: 19 })) ?? Readable.from([]))).toEqual(
      bytes.subarray(10, 20),
    )
    await cache.remove(key)
    await cache.remove(key)
    expect(await cache.find(key)).toBeUndefined()
  })

  it('stays within its bound, and keeps what was used last, also when it was opened anew', async () => {
    const keys = Array.from({ length: 5 }, newKey)
    for (const [index, key] of keys.entries()) await fill(key, randomBytes(2000), 600 - index)
    const [oldest = '', second = ''] = keys
    cache = await createBlobCache({ dir, maxBytes, log })
    await cache.find(oldest)
    const last = newKey()
    cache.fill(last, toBlob(randomBytes(2000)))
    await expect.poll(() => readdir(dir)).not.toContain(second)
    expect((await readdir(dir)).sort()).toEqual([oldest, ...keys.slice(2), last].sort())
  })

  it('takes nothing that would push out much else, and nothing that arrives in part', async () => {
    const [large, broken, good] = [newKey(), newKey(), newKey()]
    cache.fill(large, toBlob(randomBytes(maxBytes)))
    cache.fill(broken, toBlob(randomBytes(500), 1000))
    await fill(good, randomBytes(1000), 0)
    await expect.poll(() => readdir(dir)).toEqual([good])
  })

  it('removes what a crash has left half-made', async () => {
    const abandoned = join(dir, `${newKey()}-00000000.new`)
    await writeFile(abandoned, randomBytes(10))
    const at = new Date(Date.now() - 2 * 60 * 60_000)
    await utimes(abandoned, at, at)
    await fill(newKey(), randomBytes(10), 0)
    await expect.poll(() => readFile(abandoned).catch(() => 'gone')).toBe('gone')
  })
})
