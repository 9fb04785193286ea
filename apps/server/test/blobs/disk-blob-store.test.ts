import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { BlobStore } from '../../src/blobs/blob-store.ts'
import { createDiskBlobStore } from '../../src/blobs/disk-blob-store.ts'
import { openTestBlob, type TestBlob } from './test-blob.ts'

const key = '00112233445566778899aabbccddeeff'

let dir: string
let blobs: BlobStore
let blob: TestBlob

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'godwit-blobs-'))
  blobs = await createDiskBlobStore({ dir: join(dir, 'blobs') })
  blob = openTestBlob(blobs, key)
})
afterEach(async () => await rm(dir, { recursive: true, force: true }))

// What it has in common with other stores is in blob-store.test.ts.
describe('the disk blob store', () => {
  it('spreads keys over two levels of folders', async () => {
    await blob.write(0, 'x')
    await blob.finish(1)
    expect(existsSync(join(dir, 'blobs', '00', '11', key))).toBe(true)
  })

  it('reads no further ahead of the disk than one piece', async () => {
    let yielded = 0
    let mostUnwritten = 0
    async function* countUnwritten() {
      for (; yielded < 50; yielded += 1) {
        const storedBytes = (await readFile(join(dir, 'blobs', '00', '11', `${key}.part`))).length
        mostUnwritten = Math.max(mostUnwritten, yielded * 1000 - storedBytes)
        yield Buffer.alloc(1000)
      }
    }
    await blobs.write(key, { offset: 0, parts: [], source: countUnwritten() })
    expect(mostUnwritten).toBe(0)
  })

  it.skipIf(!existsSync('/dev/full'))(
    'reports a full disk, closes the file, and works again when there is room',
    async () => {
      const folder = join(dir, 'blobs', '00', '11')
      await mkdir(folder, { recursive: true })
      await symlink('/dev/full', join(folder, `${key}.part`))
      const before = (await readdir('/proc/self/fd')).length
      await expect(blob.write(0, 'hello')).rejects.toMatchObject({ code: 'ENOSPC' })
      expect((await readdir('/proc/self/fd')).length).toBe(before)
      expect(await blobs.find(key)).toBeUndefined()
      await blob.discard()
      await blob.write(0, 'hello')
      await blob.finish(5)
      expect(await blob.read()).toBe('hello')
    },
  )
})
