import { isUtf8 } from 'node:buffer'
import { crc32 } from 'node:zlib'
import { Entry, fromRandomAccessReaderPromise, RandomAccessReader, type ZipFile } from 'yauzl'
import { UnanalyzableError } from './app-facts.ts'
import type { Archive, ArchiveEntry, ByteSource } from './archive.ts'
import { type BlockCache, createBlockCache } from './block-cache.ts'
import { inflate, readPieces } from './inflate.ts'
import { limits } from './limits.ts'
import { isOutOfMemory } from './out-of-memory.ts'

/** What else the list of the archive says of a file. */
type ZipEntry = ArchiveEntry & {
  method: number
  isEncrypted: boolean
  compressedBytes: number
  headerOffset: number
  crc32: number
}

const methods = { stored: 0, deflated: 8 }

/** A name of more is no file that matters, and 200,000 of them would not fit into memory (bytes). */
const maxNameBytes = 1024

/** Of an entry in the list: what stands before its name (bytes). */
const listedEntryBytes = 46

/**
 * Reads the list of a zip archive. What is wrong with the archive is an UnanalyzableError; what the source throws comes
 * through as it is, here and from the archive's own functions, because the archive is not to blame for it.
 */
export async function openArchive(source: ByteSource): Promise<Archive> {
  const cache = createBlockCache(markFailures(source))
  return await blameArchive(async () => {
    const zip = await fromRandomAccessReaderPromise(new CacheReader(cache), source.sizeBytes, {
      autoClose: false,
      // Names are decoded here: for yauzl one that it does not like makes the whole archive unreadable.
      decodeStrings: false,
    })
    const entries = await listEntries(zip)
    const find = (entry: ArchiveEntry): ZipEntry => {
      const found = entries.get(entry.name)
      if (found === undefined) throw new Error(`${entry.name} is not in the archive`)
      return found
    }
    return {
      entries,
      read: (entry, maxBytes) => blameArchive(() => readEntry({ zip, cache }, find(entry), maxBytes)),
      readStart: (entry, length) => blameArchive(() => readEntryStart({ zip, cache }, find(entry), length)),
    }
  })
}

async function listEntries(zip: ZipFile): Promise<Map<string, ZipEntry>> {
  if (zip.entryCount > limits.entries) throw new UnanalyzableError('limit_exceeded', `${zip.entryCount} entries`)
  const entries = new Map<string, ZipEntry>()
  let listBytes = 0
  let readable = 0
  for await (const entry of zip.eachEntry()) {
    listBytes += listedEntryBytes + entry.fileNameLength + entry.extraFieldLength + entry.fileCommentLength
    if (listBytes > limits.centralDirectoryBytes) throw new UnanalyzableError('limit_exceeded', 'a list of 64 MB')
    const name = decodeName(entry.fileNameRaw)
    if (name === undefined) continue
    // Which of the two is meant would be anyone's guess, and another reader's guess may differ from ours.
    if (entries.has(name)) throw new UnanalyzableError('damaged_archive', `two entries have the name ${name}`)
    const isEncrypted = entry.isEncrypted()
    if (!isEncrypted) readable++
    entries.set(name, {
      name,
      sizeBytes: entry.uncompressedSize,
      method: entry.compressionMethod,
      isEncrypted,
      compressedBytes: entry.compressedSize,
      headerOffset: entry.relativeOffsetOfLocalHeader,
      crc32: entry.crc32,
    })
  }
  if (entries.size > 0 && readable === 0) throw new UnanalyzableError('encrypted_archive', 'every entry is encrypted')
  return entries
}

/** undefined for folders, and for names that would lead out of a folder: no app has such files. */
function decodeName(raw: Buffer): string | undefined {
  if (raw.length === 0 || raw.length > maxNameBytes) return undefined
  // Latin-1 keeps two names apart of which neither is UTF-8. Windows PowerShell separates folders by a backslash.
  const name = raw.toString(isUtf8(raw) ? 'utf8' : 'latin1').replaceAll('\\', '/')
  if (name.endsWith('/') || name.startsWith('/') || /^[a-z]:/i.test(name) || name.includes('\0')) return undefined
  return name.includes('..') && name.split('/').includes('..') ? undefined : name
}

async function readEntry(archive: OpenZip, entry: ZipEntry, maxBytes: number): Promise<Buffer> {
  if (entry.sizeBytes > maxBytes) {
    throw new UnanalyzableError('limit_exceeded', `${entry.name} has ${entry.sizeBytes} bytes, more than ${maxBytes}`)
  }
  // Nothing compresses a thousandfold with Deflate (the most is 1032), nor becomes twice as long. Known before the first
  // byte is read or the memory for it is taken.
  const isPossible =
    entry.sizeBytes <= 1100 * entry.compressedBytes && entry.compressedBytes <= 2 * entry.sizeBytes + 65_536
  if (!isPossible) throw damaged(entry, 'has impossible sizes')
  const bytes = Buffer.allocUnsafeSlow(entry.sizeBytes)
  if (bytes.length === 0) return bytes
  let filled = 0
  for await (const chunk of await openEntry(archive, entry, entry.compressedBytes)) {
    if (chunk.length > bytes.length - filled) throw damaged(entry, 'is longer than it says')
    filled += chunk.copy(bytes, filled)
  }
  if (filled < bytes.length) throw damaged(entry, 'is shorter than it says')
  if (crc32(bytes) !== entry.crc32) throw damaged(entry, 'has the wrong checksum')
  return bytes
}

async function readEntryStart(archive: OpenZip, entry: ZipEntry, length: number): Promise<Buffer> {
  const wanted = Math.min(length, entry.sizeBytes)
  const chunks: Buffer[] = []
  let filled = 0
  // Compressed bytes that yield nothing can go on for as long as the archive does.
  const compressedBytes = Math.min(entry.compressedBytes, 2 * wanted + 65_536)
  if (wanted > 0) {
    for await (const chunk of await openEntry(archive, entry, compressedBytes)) {
      chunks.push(chunk)
      filled += chunk.length
      if (filled >= wanted) break
    }
  }
  if (filled < wanted) throw damaged(entry, 'is shorter than it says')
  return Buffer.concat(chunks).subarray(0, wanted)
}

type OpenZip = { zip: ZipFile; cache: BlockCache }

/** The content of an entry, made from the first `compressedBytes` of what is stored of it. */
async function openEntry({ zip, cache }: OpenZip, entry: ZipEntry, compressedBytes: number) {
  if (entry.isEncrypted) throw new UnanalyzableError('encrypted_archive', `${entry.name} is encrypted`)
  const isStored = entry.method === methods.stored
  if (!isStored && entry.method !== methods.deflated) {
    throw damaged(entry, `is compressed by the unknown method ${entry.method}`)
  }
  const listed = Object.assign(new Entry(), {
    relativeOffsetOfLocalHeader: entry.headerOffset,
    compressedSize: entry.compressedBytes,
  })
  const { fileDataStart } = await zip.readLocalFileHeaderPromise(listed, { minimal: true })
  const pieces = readPieces(cache, fileDataStart, compressedBytes)
  return isStored ? pieces : inflate(pieces)
}

function damaged(entry: ZipEntry, what: string): UnanalyzableError {
  return new UnanalyzableError('damaged_archive', `${entry.name} ${what}`)
}

/** How yauzl reads. Positions come from the archive. */
class CacheReader extends RandomAccessReader {
  readonly #cache: BlockCache

  constructor(cache: BlockCache) {
    super()
    this.#cache = cache
  }

  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null) => void,
  ): void {
    if (!Number.isSafeInteger(position) || position < 0 || length > this.#cache.sizeBytes - position) {
      callback(new UnanalyzableError('damaged_archive', `something at ${position}, which is not in the archive`))
      return
    }
    const kept = this.#cache.readKept(position, length)
    if (kept !== undefined) {
      kept.copy(buffer, offset)
      callback(null)
      return
    }
    this.#cache.read(position, length).then((bytes) => {
      bytes.copy(buffer, offset)
      callback(null)
    }, callback)
  }
}

/** What the source threw, on its way through yauzl and zlib. */
class SourceFailure extends Error {}

function markFailures(source: ByteSource): ByteSource {
  return {
    sizeBytes: source.sizeBytes,
    read: async (offset, length) => {
      try {
        const bytes = await source.read(offset, length)
        if (bytes.length !== length) throw new Error(`the source gave ${bytes.length} bytes instead of ${length}`)
        return bytes
      } catch (error) {
        throw new SourceFailure('the source cannot be read', { cause: error })
      }
    },
  }
}

async function blameArchive<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof SourceFailure) throw error.cause
    if (error instanceof UnanalyzableError || isOutOfMemory(error)) throw error
    const detail = error instanceof Error ? error.message : String(error)
    const problem = /strong encryption/.test(detail) ? 'encrypted_archive' : 'damaged_archive'
    throw new UnanalyzableError(problem, detail)
  }
}
