import { createHash } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { UnanalyzableError } from '../../../src/analyzer/app-facts.ts'
import type { ByteSource } from '../../../src/analyzer/archive.ts'
import { openArchive } from '../../../src/analyzer/open-archive.ts'
import { buildZip, fillRoom, openPieces, openZip, type ZipInput } from './build-zip.ts'

const mb = 1024 ** 2
const honest: ZipInput[] = [
  { name: 'a.txt', content: 'hello' },
  { name: 'folder/stored.txt', content: 'stored', method: 0 },
  { name: 'empty.txt' },
]

describe('an archive that is opened', () => {
  it('gives its files, stored or compressed, and no folders', async () => {
    const archive = await openArchive(openZip([...honest, { name: 'folder/' }]))
    expect([...archive.entries.keys()]).toEqual(['a.txt', 'folder/stored.txt', 'empty.txt'])
    expect(await readText(archive, 'a.txt')).toBe('hello')
    expect(await readText(archive, 'folder/stored.txt')).toBe('stored')
    expect(await readText(archive, 'empty.txt')).toBe('')
  })

  it('gives the same for the large form of the format', async () => {
    const archive = await openArchive(openZip(honest, { zip64: true }))
    expect(await readText(archive, 'folder/stored.txt')).toBe('stored')
  })

  it('gives what was put in, in whatever order it is asked for', async () => {
    const files = fc.uniqueArray(
      fc.record({
        name: fc.stringMatching(/^[a-z]{1,8}(\/[a-z]{1,8})?$/),
        content: fc.uint8Array({ maxLength: 3000 }),
        repeated: fc.integer({ min: 1, max: 400 }),
        method: fc.constantFrom(0, 8),
      }),
      { selector: ({ name }) => name, maxLength: 6 },
    )
    await fc.assert(
      fc.asyncProperty(files, fc.nat(2000), async (inputs, length) => {
        const contents = inputs.map(({ content, repeated }) =>
          Buffer.concat(Array.from({ length: repeated }, () => content)),
        )
        const archive = await openArchive(
          openZip(inputs.map(({ name, method }, index) => ({ name, method, content: contents[index] ?? '' }))),
        )
        const found = await Promise.all(
          inputs.map(async ({ name }) => {
            const entry = getEntry(archive, name)
            const [start, whole] = await Promise.all([archive.readStart(entry, length), archive.read(entry, 2 * mb)])
            expect(start.equals(whole.subarray(0, length))).toBe(true)
            return whole
          }),
        )
        expect(found.map((bytes, index) => bytes.equals(contents[index] ?? Buffer.alloc(0)))).not.toContain(false)
      }),
      { numRuns: 60 },
    )
  })

  it('leaves out what has a name that leads elsewhere, and reads the rest', async () => {
    const names = ['../up', 'a/../../up', '..', '/etc/passwd', 'C:/windows', 'c:up', '..\\up', 'C:\\up', 'nul\0']
    const archive = await openArchive(openZip([...names.map((name) => ({ name, content: 'x' })), ...honest]))
    expect([...archive.entries.keys()]).toEqual(honest.map(({ name }) => name))
  })

  it('takes a backslash between folders as Windows does', async () => {
    const archive = await openArchive(openZip([{ name: 'data\\flutter_assets\\version.json', content: '{}' }]))
    expect([...archive.entries.keys()]).toEqual(['data/flutter_assets/version.json'])
    await expect(
      openArchive(
        openZip([
          { name: 'a\\b', content: '1' },
          { name: 'a/b', content: '2' },
        ]),
      ),
    ).rejects.toThrow(/two entries/)
  })

  it('keeps names apart that are not UTF-8', async () => {
    const inputs = [Buffer.from([0x61, 0xe4]), Buffer.from([0x61, 0xf6]), Buffer.from('ä…')]
    const archive = await openArchive(openZip(inputs.map((name) => ({ name, content: 'x' }))))
    expect([...archive.entries.keys()]).toEqual(['aä', 'aö', 'ä…'])
  })

  it('reads little of a large one', async () => {
    const source = openZip(spread(200 * mb))
    const archive = await openArchive(source)
    expect(await readText(archive, 'wanted.txt')).toBe('here')
    expect(source.sizeBytes).toBeGreaterThan(200 * mb)
    expect(source.reads).toBeLessThanOrEqual(4)
    expect(source.readBytes).toBeLessThanOrEqual(2 * mb)
  })

  it('reads a list of 100,000 files in a few steps', async () => {
    const source = openZip(manyFiles(100_000), { zip64: true })
    const archive = await openArchive(source)
    expect(archive.entries.size).toBe(100_000)
    expect(source.reads).toBeLessThanOrEqual(60)
  })

  it('reads a beginning without reading the rest', async () => {
    const source = openZip([
      { name: 'stored', content: fillRoom(200 * mb) },
      { name: 'deflated', content: Buffer.alloc(50 * mb) },
      { name: 'room', content: fillRoom(2 * mb) },
    ])
    const archive = await openArchive(source)
    const before = source.readBytes
    expect(await archive.readStart(getEntry(archive, 'stored'), 64)).toHaveLength(64)
    expect((await archive.readStart(getEntry(archive, 'deflated'), 4096)).equals(Buffer.alloc(4096))).toBe(true)
    expect(source.readBytes - before).toBeLessThanOrEqual(mb)
  })
})

describe('a hostile archive', () => {
  const bomb = deflateRawSync(Buffer.alloc(200 * mb))

  it('is refused where a file is larger than it may be', async () => {
    const archive = await openArchive(openZip([{ name: 'bomb', compressed: bomb, method: 8, sizeBytes: 200 * mb }]))
    await expect(archive.read(getEntry(archive, 'bomb'), 4 * mb)).rejects.toMatchObject({ problem: 'limit_exceeded' })
  })

  it('is refused where a file lies about its size', async () => {
    const sizes = [{ sizeBytes: 1000 }, { sizeBytes: 1_000_000 }, { sizeBytes: 220 * mb }]
    for (const { sizeBytes } of sizes) {
      const archive = await openArchive(openZip([{ name: 'bomb', compressed: bomb, method: 8, sizeBytes }]))
      const entry = getEntry(archive, 'bomb')
      await expect(archive.read(entry, 300 * mb), `${sizeBytes}`).rejects.toMatchObject({ problem: 'damaged_archive' })
      expect((await archive.readStart(entry, 64)).equals(Buffer.alloc(64))).toBe(true)
    }
    const short = await openArchive(openZip([{ name: 'short', content: 'hello', sizeBytes: 50 }]))
    await expect(short.read(getEntry(short, 'short'), mb)).rejects.toMatchObject({ problem: 'damaged_archive' })
    await expect(short.readStart(getEntry(short, 'short'), 50)).rejects.toMatchObject({ problem: 'damaged_archive' })
  })

  it('is refused where compressed bytes go on for ever and come to nothing', async () => {
    // A block of Deflate that is stored, empty and not the last one.
    const pattern = Buffer.concat(Array.from({ length: 1000 }, () => Buffer.from([0, 0, 0, 0xff, 0xff])))
    const content = { pattern, sizeBytes: 500 * mb }
    const source = openZip([{ name: 'nothing', content, method: 8, sizeBytes: 100 * mb }])
    const archive = await openArchive(source)
    const entry = getEntry(archive, 'nothing')
    await expect(archive.read(entry, 200 * mb)).rejects.toMatchObject({ problem: 'damaged_archive' })
    await expect(archive.readStart(entry, 4096)).rejects.toMatchObject({ problem: 'damaged_archive' })
    expect(source.readBytes).toBeLessThan(3 * mb)
  })

  it('is refused when it is cut off anywhere', async () => {
    const whole = await readAll(openZip([...honest, { name: 'random', content: fillRoom(3000), method: 0 }]))
    for (let length = 0; length < whole.length; length += 7) {
      const cut = readEverything(openPieces([whole.subarray(0, length)]))
      await expect(cut, `${length} bytes`).rejects.toMatchObject({ problem: 'damaged_archive' })
    }
  })

  it('is refused when it is no archive, or its end says what is not so', async () => {
    const whole = await readAll(openZip(honest))
    const wrong = (at: number, value: number) => {
      const bytes = Buffer.from(whole)
      bytes.writeUInt32LE(value, at)
      return openPieces([bytes])
    }
    const end = whole.length - 22
    const sources = {
      text: openPieces([Buffer.from('this is no archive, however long it may be'.repeat(100))]),
      room: openPieces([fillRoom(300 * mb)]),
      nothing: openPieces([]),
      'list elsewhere': wrong(end + 16, 3),
      'list outside': wrong(end + 16, 0xfffffff0),
      'more entries': wrong(end + 8, 0x00ff00ff),
      'an end alone': openPieces([Buffer.from('504b050600000000ffffffffffffffffffffffff0000', 'hex')]),
      'large, list outside': openZip(honest, { zip64: true, directoryOffset: 2n ** 63n }),
    }
    for (const [name, source] of Object.entries(sources)) {
      await expect(openArchive(source), name).rejects.toMatchObject({ problem: 'damaged_archive' })
    }
  })

  it('is refused where its middle is corrupt', async () => {
    const corrupt = openZip([{ name: 'a', content: fillRoom(20_000), method: 0, crc32: 1 }, ...honest])
    const compressed = deflateRawSync(Buffer.from('hello '.repeat(1000)))
    compressed.fill(0xff, 5, 15)
    const broken = openZip([{ name: 'a', compressed, sizeBytes: 6000, method: 8 }, ...honest])
    const moved = openZip([{ name: 'a', content: 'hello', headerOffset: 1 }, ...honest])
    const outside = openZip([{ name: 'a', content: 'hello', headerOffset: 0x7fffffff }, ...honest])
    for (const source of [corrupt, broken, moved, outside]) {
      const archive = await openArchive(source)
      await expect(archive.read(getEntry(archive, 'a'), mb)).rejects.toMatchObject({ problem: 'damaged_archive' })
      expect(await readText(archive, 'a.txt')).toBe('hello')
    }
  })

  it('is refused where a file is compressed in a way that is not known', async () => {
    const archive = await openArchive(openZip([{ name: 'a', content: 'hello', method: 14 }]))
    await expect(archive.read(getEntry(archive, 'a'), mb)).rejects.toMatchObject({ problem: 'damaged_archive' })
  })

  it('is refused where it is encrypted', async () => {
    const encrypted = { name: 'secret', compressed: Buffer.alloc(17), sizeBytes: 5, method: 0, flags: 1 }
    const archive = await openArchive(openZip([encrypted, ...honest]))
    const entry = getEntry(archive, 'secret')
    await expect(archive.read(entry, mb)).rejects.toMatchObject({ problem: 'encrypted_archive' })
    await expect(archive.readStart(entry, 2)).rejects.toMatchObject({ problem: 'encrypted_archive' })
    await expect(openArchive(openZip([encrypted]))).rejects.toMatchObject({ problem: 'encrypted_archive' })
    const strong = openZip([{ ...encrypted, flags: 0x41 }])
    await expect(openArchive(strong)).rejects.toMatchObject({ problem: 'encrypted_archive' })
  })

  it('is refused before anything is done for more entries than are allowed', async () => {
    for (const entryCount of [2n ** 62n, 2n ** 64n - 1n, 200_001n]) {
      const source = openZip(honest, { zip64: true, entryCount })
      await expect(openArchive(source)).rejects.toMatchObject({ problem: 'limit_exceeded' })
      expect(source.reads).toBe(1)
    }
    const source = openZip(manyFiles(300_000), { zip64: true })
    await expect(openArchive(source)).rejects.toMatchObject({ problem: 'limit_exceeded' })
    expect(source.reads).toBe(1)
  })

  it('is refused for a list that is too long', async () => {
    const name = (index: number) => `${index}`.padEnd(60_000, 'x')
    const inputs = Array.from({ length: 1200 }, (_, index) => ({ name: name(index) }))
    await expect(openArchive(openZip(inputs))).rejects.toMatchObject({ problem: 'limit_exceeded' })
  })

  it('is refused for two files of one name', async () => {
    const source = openZip([...honest, { name: 'a.txt', content: 'other' }])
    await expect(openArchive(source)).rejects.toMatchObject({ problem: 'damaged_archive' })
  })

  it('never brings about anything but a refusal, whichever bytes of it are changed', async () => {
    const whole = await readAll(openZip([...honest, { name: 'more', content: 'more '.repeat(100) }], { zip64: true }))
    const changes = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.constantFrom(0, 1, 0x7f, 0x80, 0xff)), {
      minLength: 1,
      maxLength: 4,
    })
    await fc.assert(
      fc.asyncProperty(changes, async (changed) => {
        const bytes = Buffer.from(whole)
        for (const [at, value] of changed) bytes[at] = value
        await readEverything(openPieces([bytes])).catch((error) => expect(error).toBeInstanceOf(UnanalyzableError))
      }),
      { numRuns: 500 },
    )
  })
})

describe('a source that fails', () => {
  const failure = new Error('the disk is gone')

  it('is not blamed on the archive, whenever it fails', async () => {
    const pieces = buildZip([
      { name: 'a', content: fillRoom(3 * mb) },
      { name: 'room', content: fillRoom(6 * mb) },
    ])
    for (let works = 0; works < 4; works++) {
      const source = failAfter(openPieces(pieces), works, failure)
      await expect(readEverything(source), `after ${works} reads`).rejects.toBe(failure)
    }
  })

  it('is not blamed on the archive while it is inflated', async () => {
    const content = createHash('shake256', { outputLength: 2 * mb }).digest()
    const pieces = buildZip([
      { name: 'a', content },
      { name: 'room', content: fillRoom(6 * mb) },
    ])
    const source = failAfter(openPieces(pieces), 2, failure)
    const archive = await openArchive(source)
    await expect(archive.read(getEntry(archive, 'a'), 4 * mb)).rejects.toBe(failure)
  })

  it('is read again by the next who asks', async () => {
    const source = openZip([
      { name: 'a', content: 'hello' },
      { name: 'room', content: fillRoom(6 * mb) },
    ])
    let isBroken = false
    const archive = await openArchive({
      sizeBytes: source.sizeBytes,
      read: async (offset, length) => {
        if (isBroken) throw failure
        return await source.read(offset, length)
      },
    })
    isBroken = true
    await expect(readText(archive, 'a')).rejects.toBe(failure)
    isBroken = false
    expect(await readText(archive, 'a')).toBe('hello')
  })

  it('is at fault too when it gives too little', async () => {
    const source = openZip(honest)
    const short = { sizeBytes: source.sizeBytes, read: async () => Buffer.alloc(3) }
    await expect(openArchive(short)).rejects.toThrow('3 bytes instead of')
    await expect(openArchive(short)).rejects.not.toBeInstanceOf(UnanalyzableError)
  })
})

type Opened = Awaited<ReturnType<typeof openArchive>>

function getEntry(archive: Opened, name: string) {
  const entry = archive.entries.get(name)
  if (entry === undefined) throw new Error(`no ${name}`)
  return entry
}

async function readText(archive: Opened, name: string): Promise<string> {
  return (await archive.read(getEntry(archive, name), mb)).toString()
}

async function readAll(source: ByteSource): Promise<Buffer> {
  return await source.read(0, source.sizeBytes)
}

async function readEverything(source: ByteSource): Promise<void> {
  const archive = await openArchive(source)
  for (const entry of archive.entries.values()) await archive.read(entry, 64 * mb)
}

function failAfter(source: ByteSource, works: number, failure: Error): ByteSource {
  let reads = 0
  return {
    sizeBytes: source.sizeBytes,
    read: async (offset, length) => {
      if (reads++ >= works) throw failure
      return await source.read(offset, length)
    },
  }
}

/** Files of 6 MB with small ones between them. */
function* spread(sizeBytes: number): Generator<ZipInput> {
  const count = Math.ceil(sizeBytes / (6 * mb))
  for (let index = 0; index < count; index++) {
    yield { name: `blobs/${index}`, content: fillRoom(6 * mb) }
    yield { name: index === Math.floor(count / 2) ? 'wanted.txt' : `small/${index}.txt`, content: 'here' }
  }
}

function* manyFiles(count: number): Generator<ZipInput> {
  for (let index = 0; index < count; index++) yield { name: `files/${index}.txt`, method: 0 }
}
