import { readFileSync } from 'node:fs'
import { fromBuffer } from 'yauzl'
import { UnanalyzableError } from '../../../src/analyzer/app-facts.ts'
import type { Archive, ArchiveEntry } from '../../../src/analyzer/archive.ts'

export type Files = Map<string, Buffer>

/** An archive of files in memory, which keeps the promises of the real one. */
export function createArchive(files: Files): Archive {
  const entries = [...files].map(([name, bytes]) => [name, { name, sizeBytes: bytes.length }] as const)
  const find = ({ name }: ArchiveEntry): Buffer => files.get(name) ?? Buffer.alloc(0)
  return {
    entries: new Map(entries),
    read: async (entry, maxBytes) => {
      const bytes = find(entry)
      if (bytes.length > maxBytes) throw new UnanalyzableError('limit_exceeded', entry.name)
      return bytes
    },
    readStart: async (entry, length) => find(entry).subarray(0, length),
  }
}

export function createFiles(files: Record<string, Buffer | string>): Files {
  return new Map(Object.entries(files).map(([name, content]) => [name, Buffer.from(content)]))
}

/** The files of an archive that a tool for iOS made. */
export async function readRealFiles(): Promise<Files> {
  const zip = await openZip(readFileSync(new URL('../fixtures/real/ios-xcarchive.zip', import.meta.url)))
  return zip
}

async function openZip(bytes: Buffer): Promise<Files> {
  const files: Files = new Map()
  return new Promise((resolve, reject) => {
    fromBuffer(bytes, { lazyEntries: true }, (error, zip) => {
      if (error) return reject(error)
      zip.on('error', reject)
      zip.on('end', () => resolve(files))
      zip.on('entry', (entry) => {
        if (entry.fileName.endsWith('/')) return zip.readEntry()
        zip.openReadStream(entry, (failure, stream) => {
          if (failure) return reject(failure)
          const chunks: Buffer[] = []
          stream.on('data', (chunk: Buffer) => chunks.push(chunk))
          stream.on('end', () => {
            files.set(entry.fileName, Buffer.concat(chunks))
            zip.readEntry()
          })
        })
      })
      zip.readEntry()
    })
  })
}
