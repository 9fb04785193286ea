import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Logger } from 'pino'
import { checkKey, type StoredBlob } from './blob-store.ts'

/** A use is noted in the time of the file, at most this often. */
const touchAfterMs = 60 * 60_000
/** Copies that are made at a time. */
const maxFills = 2
/** A half-made copy this old was left by a crash. */
const abandonedAfterMs = 60 * 60_000
const unfinishedSuffix = '.new'

/** Copies of blobs on disk, bounded: what was used last stays. Processes may share the folder. */
export type BlobCache = {
  find: (key: string) => Promise<StoredBlob | undefined>
  /** Copies the blob soon, unless too much else is being copied. That it cannot be is no failure of anything. */
  fill: (key: string, blob: StoredBlob) => void
  remove: (key: string) => Promise<void>
}

export async function createBlobCache(options: { dir: string; maxBytes: number; log: Logger }): Promise<BlobCache> {
  const { dir, maxBytes, log } = options
  await mkdir(dir, { recursive: true })
  const filling = new Set<string>()
  const toPath = (key: string) => join(dir, checkKey(key))

  const fill = async (key: string, blob: StoredBlob) => {
    const unfinished = `${toPath(key)}-${randomBytes(4).toString('hex')}${unfinishedSuffix}`
    try {
      await pipeline(await blob.read({ start: 0, end: blob.sizeBytes - 1 }), createWriteStream(unfinished))
      if ((await stat(unfinished)).size !== blob.sizeBytes) throw new Error('the copy has another size')
      await rename(unfinished, toPath(key))
      await trim(dir, maxBytes)
    } finally {
      await rm(unfinished, { force: true })
    }
  }

  return {
    async find(key) {
      const path = toPath(key)
      const found = await stat(path).catch(() => undefined)
      if (found === undefined) return undefined
      const now = new Date()
      if (now.getTime() - found.mtimeMs > touchAfterMs) await utimes(path, now, now).catch(() => undefined)
      return {
        sizeBytes: found.size,
        read: async (range) => (await open(path, 'r')).createReadStream(range),
        locate: async () => undefined,
      }
    },
    fill(key, blob) {
      const isWorth = blob.sizeBytes > 0 && blob.sizeBytes <= maxBytes / 4
      if (!isWorth || filling.has(key) || filling.size >= maxFills) return
      filling.add(key)
      fill(key, blob)
        .catch((error: unknown) => log.debug({ key, err: error }, 'a patch is not cached'))
        .finally(() => filling.delete(key))
    },
    remove: async (key) => await rm(toPath(key), { force: true }),
  }
}

/** Looks at the folder, not at a list of its own: another process may have filled it. */
async function trim(dir: string, maxBytes: number): Promise<void> {
  const names = await readdir(dir)
  const files = await Promise.all(
    names.map(async (name) => ({
      path: join(dir, name),
      name,
      found: await stat(join(dir, name)).catch(() => undefined),
    })),
  )
  const known = files.flatMap(({ found, ...file }) => (found === undefined ? [] : [{ ...file, found }]))
  let leftBytes = maxBytes
  for (const { path, name, found } of known.sort((one, other) => other.found.mtimeMs - one.found.mtimeMs)) {
    const isAbandoned = name.endsWith(unfinishedSuffix) && Date.now() - found.mtimeMs > abandonedAfterMs
    leftBytes -= found.size
    if (leftBytes < 0 || isAbandoned) await rm(path, { force: true })
  }
}
