import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import yauzl from 'yauzl'
import { UnanalyzableError } from '../../src/analyzer/app-facts.ts'
import type { Archive } from '../../src/analyzer/archive.ts'

export type Files = Map<string, Buffer>

/** An archive of these files, which keeps the promises of the real one. */
export function createArchive(files: ReadonlyMap<string, Buffer>): Archive {
  const find = (name: string) => {
    const file = files.get(name)
    if (file === undefined) throw new Error(`the archive has no ${name}`)
    return file
  }
  return {
    entries: new Map([...files].map(([name, file]) => [name, { name, sizeBytes: file.length }])),
    read: async ({ name }, maxBytes) => {
      const file = find(name)
      if (file.length > maxBytes) throw new UnanalyzableError('limit_exceeded', `${name} is too large`)
      return file
    },
    readStart: async ({ name }, length) => find(name).subarray(0, length),
  }
}

const fixtures = new URL('fixtures/', import.meta.url)

/** By its path below the folder of fixtures. */
export function readFixture(path: string): Promise<Buffer> {
  return readFile(new URL(path, fixtures))
}

/** The files of a fixture, to be changed by a test. */
export async function readFixtureFiles(path: string): Promise<Files> {
  const zip = await yauzl.fromBufferPromise(await readFixture(path))
  const files: Files = new Map()
  for await (const entry of zip.eachEntry()) {
    if (!entry.fileName.endsWith('/')) files.set(entry.fileName, await buffer(await zip.openReadStreamPromise(entry)))
  }
  return files
}

export function createFiles(files: Record<string, Buffer | string>): Files {
  return new Map(Object.entries(files).map(([name, content]) => [name, Buffer.from(content)]))
}
