import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { BlobStore } from '../../src/blobs/blob-store.ts'
import { createDiskBlobStore } from '../../src/blobs/disk-blob-store.ts'

const key = '00112233445566778899aabbccddeeff'

let dir: string
let blobs: BlobStore

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'godwit-blobs-'))
  blobs = await createDiskBlobStore({ dir: join(dir, 'blobs') })
})
afterEach(async () => await rm(dir, { recursive: true, force: true }))

async function* yieldTexts(...texts: (string | Error)[]): AsyncGenerator<Buffer> {
  for (const text of texts) {
    if (text instanceof Error) throw text
    yield Buffer.from(text)
  }
}

const write = (offset: number, ...texts: (string | Error)[]) =>
  blobs.write(key, { offset, source: yieldTexts(...texts) })
const readText = async (start: number, end: number) => String(await buffer(blobs.read(key, { start, end })))
const listFiles = async () =>
  (await readdir(dir, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

describe('the disk blob store', () => {
  it('reads a finished blob as it was written, whole and in parts', async () => {
    expect(await write(0, 'hello ', 'world')).toEqual({ writtenBytes: 11, failure: undefined })
    await blobs.finish(key, 11)
    expect(await blobs.findSize(key)).toBe(11)
    expect(await readText(0, 10)).toBe('hello world')
    expect(await readText(4, 6)).toBe('o w')
  })

  it('spreads keys over two levels of folders', async () => {
    await write(0, 'x')
    await blobs.finish(key, 1)
    expect(existsSync(join(dir, 'blobs', '00', '11', key))).toBe(true)
  })

  it('does not show an unfinished blob', async () => {
    await write(0, 'hello')
    expect(await blobs.findSize(key)).toBeUndefined()
  })

  it('keeps what arrived before the source failed, and says how much', async () => {
    const failure = new Error('connection lost')
    expect(await write(0, 'hello', failure)).toEqual({ writtenBytes: 5, failure })
    expect(await write(5, ' world')).toEqual({ writtenBytes: 6, failure: undefined })
    await blobs.finish(key, 11)
    expect(await readText(0, 10)).toBe('hello world')
  })

  it('takes the same bytes again at any place', async () => {
    await write(0, 'hello world')
    await write(3, 'lo w')
    await write(0, 'hello')
    await blobs.finish(key, 11)
    expect(await readText(0, 10)).toBe('hello world')
  })

  it('goes on after it was opened anew', async () => {
    await write(0, 'hello')
    blobs = await createDiskBlobStore({ dir: join(dir, 'blobs') })
    await write(5, ' world')
    expect(await blobs.hash(key, 11)).toBe(sha256('hello world'))
  })

  it('refuses to leave a hole', async () => {
    await expect(write(5, 'world')).rejects.toThrow()
    await write(0, 'hell')
    await expect(write(5, 'world')).rejects.toThrow('the bytes before 5 are missing')
  })

  it('hashes finished and unfinished blobs, and tells when bytes are missing', async () => {
    expect(await blobs.hash(key, 5)).toBeUndefined()
    await write(0, 'hello')
    expect(await blobs.hash(key, 5)).toBe(sha256('hello'))
    expect(await blobs.hash(key, 6)).toBeUndefined()
    await blobs.finish(key, 5)
    expect(await blobs.hash(key, 5)).toBe(sha256('hello'))
  })

  it('finishes only at the exact size, and as often as asked', async () => {
    await write(0, 'hello')
    await expect(blobs.finish(key, 6)).rejects.toThrow('5 bytes instead of 6')
    expect(await blobs.findSize(key)).toBeUndefined()
    await blobs.finish(key, 5)
    await blobs.finish(key, 5)
    expect(await readText(0, 4)).toBe('hello')
    expect(await listFiles()).toEqual([key])
  })

  it('has empty blobs, for which nothing is ever written', async () => {
    expect(await blobs.hash(key, 0)).toBe(sha256(''))
    await blobs.finish(key, 0)
    expect(await blobs.findSize(key)).toBe(0)
  })

  it('discards an unfinished blob and leaves a finished one', async () => {
    await write(0, 'hello')
    await blobs.discard(key)
    await blobs.discard(key)
    expect(await listFiles()).toEqual([])
    await write(0, 'hello')
    await blobs.finish(key, 5)
    await blobs.discard(key)
    expect(await readText(0, 4)).toBe('hello')
  })

  it('removes what there is, and nothing without complaint', async () => {
    await blobs.remove(key)
    await write(0, 'hello')
    await blobs.remove(key)
    await write(0, 'hello')
    await blobs.finish(key, 5)
    await blobs.remove(key)
    expect(await listFiles()).toEqual([])
  })

  it.each(['', 'short', '../../../etc/passwd', 'AABBCCDDEEFF', '0011/2233445566', '00112233\0'])(
    'takes no key that is not its own: %j',
    async (wrong) => {
      await expect(blobs.write(wrong, { offset: 0, source: yieldTexts('x') })).rejects.toThrow('not the key of a blob')
      await expect(blobs.findSize(wrong)).rejects.toThrow('not the key of a blob')
      await expect(blobs.remove(wrong)).rejects.toThrow('not the key of a blob')
      expect(() => blobs.read(wrong, { start: 0, end: 0 })).toThrow('not the key of a blob')
    },
  )

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
    await blobs.write(key, { offset: 0, source: countUnwritten() })
    expect(mostUnwritten).toBe(0)
  })

  it.skipIf(!existsSync('/dev/full'))(
    'reports a full disk, closes the file, and works again when there is room',
    async () => {
      const folder = join(dir, 'blobs', '00', '11')
      await mkdir(folder, { recursive: true })
      await symlink('/dev/full', join(folder, `${key}.part`))
      const before = (await readdir('/proc/self/fd')).length
      await expect(write(0, 'hello')).rejects.toMatchObject({ code: 'ENOSPC' })
      expect((await readdir('/proc/self/fd')).length).toBe(before)
      expect(await blobs.findSize(key)).toBeUndefined()
      await blobs.discard(key)
      await write(0, 'hello')
      await blobs.finish(key, 5)
      expect(await readText(0, 4)).toBe('hello')
    },
  )
})
