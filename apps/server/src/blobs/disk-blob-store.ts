import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { access, type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { syncFolder } from '../sync-folder.ts'
import { type BlobStore, catchFailure, checkKey, keyPattern, LostBytesError } from './blob-store.ts'
import { markFolder } from './mark-folder.ts'

const folderPattern = /^[0-9a-z]{2}$/

/** One read of a file that is hashed (bytes): short enough to leave the event loop to others. */
const hashStepBytes = 256 * 1024

/**
 * Blobs as files, in two levels of folders: `ab/cd/abcd…`. An unfinished one is one file with the suffix `.part`, so that
 * there are no parts to name. Bytes are synced before a write is reported, and folders after every name that must survive
 * a power failure.
 */
export async function createDiskBlobStore(options: { dir: string }): Promise<BlobStore> {
  const dir = resolve(options.dir)
  await mkdir(dir, { recursive: true })
  const requireFolder = await markFolder(dir)
  const toPath = (key: string): string => join(dir, checkKey(key).slice(0, 2), key.slice(2, 4), key)
  return {
    async write(key, { offset, source }) {
      await requireFolder()
      await using file = await openUnfinished(toUnfinished(toPath(key)), offset)
      const written = await writeAll(file, offset, source)
      await file.sync()
      return { ...written, parts: [] }
    },
    async hash(key, { sizeBytes }) {
      await requireFolder()
      if (sizeBytes === 0) return createHash('sha256').digest('hex')
      const path = toPath(key)
      return (await hashFile(path, sizeBytes)) ?? (await hashFile(toUnfinished(path), sizeBytes))
    },
    async finish(key, { sizeBytes }) {
      await requireFolder()
      const path = toPath(key)
      if ((await findFileSize(path)) !== sizeBytes) {
        if (sizeBytes === 0) await createEmpty(toUnfinished(path))
        const storedBytes = await findFileSize(toUnfinished(path))
        if (storedBytes !== sizeBytes) throw new Error(`blob ${key}: ${storedBytes} bytes instead of ${sizeBytes}`)
        await rename(toUnfinished(path), path)
      } else {
        await rm(toUnfinished(path), { force: true })
      }
      await syncFolder(dirname(path))
    },
    async find(key) {
      await requireFolder()
      const path = toPath(key)
      const sizeBytes = await findFileSize(path)
      if (sizeBytes === undefined) return undefined
      return { sizeBytes, read: async (range) => await openFile(path, range), locate: async () => undefined }
    },
    async discard(key) {
      await requireFolder()
      await rm(toUnfinished(toPath(key)), { force: true })
    },
    dropParts: async () => {},
    async *list() {
      await requireFolder()
      for (const first of await listNames(dir, folderPattern)) {
        for (const second of await listNames(join(dir, first), folderPattern)) {
          yield* await listNames(join(dir, first, second), keyPattern)
        }
      }
    },
    async remove(key) {
      await requireFolder()
      const path = toPath(key)
      await rm(toUnfinished(path), { force: true })
      await rm(path, { force: true })
    },
    // Whatever is in the folder goes with the row of its blob.
    removeLeftovers: async () => 0,
    async check() {
      await requireFolder()
      await access(dir, constants.R_OK | constants.W_OK)
    },
  }
}

function toUnfinished(path: string): string {
  return `${path}.part`
}

/** Creates the file for a write at its start. A later write needs all the bytes before it, or it would leave a hole. */
async function openUnfinished(path: string, offset: number): Promise<FileHandle> {
  if (offset === 0) await createFolders(dirname(path))
  else if (((await findFileSize(path)) ?? 0) < offset)
    throw new LostBytesError(`the bytes before ${offset} are missing`)
  const file = await open(path, offset === 0 ? constants.O_RDWR | constants.O_CREAT : constants.O_RDWR)
  try {
    if (offset === 0) await syncFolder(dirname(path))
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

async function createEmpty(path: string): Promise<void> {
  const file = await openUnfinished(path, 0)
  await file.close()
}

async function createFolders(folder: string): Promise<void> {
  if ((await mkdir(folder, { recursive: true })) === undefined) return
  await syncFolder(dirname(folder))
  await syncFolder(dirname(dirname(folder)))
}

/** Reads on only when what was read is written, so that a slow disk slows the sender down. */
async function writeAll(file: FileHandle, offset: number, source: AsyncIterable<Buffer>) {
  let position = offset
  let failure: unknown
  const chunks = catchFailure(source, (error) => {
    failure = error
  })
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.length; ) {
      const { bytesWritten } = await file.write(chunk, start, chunk.length - start, position)
      start += bytesWritten
      position += bytesWritten
    }
  }
  return { writtenBytes: position - offset, failure }
}

/** A file that another process removes while it is read is read to its end. */
async function openFile(path: string, range: { start: number; end: number }): Promise<Readable> {
  const file = await open(path, 'r')
  return file.createReadStream(range)
}

async function hashFile(path: string, sizeBytes: number): Promise<string | undefined> {
  const storedBytes = await findFileSize(path)
  if (storedBytes === undefined || storedBytes < sizeBytes) return undefined
  const hash = createHash('sha256')
  const bytes = createReadStream(path, { start: 0, end: sizeBytes - 1, highWaterMark: hashStepBytes })
  for await (const chunk of bytes) hash.update(chunk)
  return hash.digest('hex')
}

async function listNames(folder: string, pattern: RegExp): Promise<string[]> {
  return (await readdir(folder)).filter((name) => pattern.test(name)).sort()
}

async function findFileSize(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
