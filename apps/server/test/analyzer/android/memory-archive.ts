import { readFile } from 'node:fs/promises'
import yauzl from 'yauzl'
import { UnanalyzableError } from '../../../src/analyzer/app-facts.ts'
import type { Archive } from '../../../src/analyzer/archive.ts'

/** An archive of these files. */
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

const fixtures = new URL('../fixtures/android/', import.meta.url)

export function readFixture(name: string): Promise<Buffer> {
  return readFile(new URL(name, fixtures))
}

/** The files of a fixture, to be changed by a test. */
export async function readFixtureFiles(name: string): Promise<Map<string, Buffer>> {
  const zip = await yauzl.fromBufferPromise(await readFixture(name))
  const files = new Map<string, Buffer>()
  for await (const entry of zip.eachEntry()) {
    if (entry.fileName.endsWith('/')) continue
    const chunks: Buffer[] = []
    for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk)
    files.set(entry.fileName, Buffer.concat(chunks))
  }
  return files
}
