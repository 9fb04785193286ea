import { LRUCache } from 'lru-cache'
import type { BlobCache } from '../blobs/blob-cache.ts'
import { type BlobStore, BlobsUnavailableError, type StoredBlob } from '../blobs/blob-store.ts'

/** How long the store is not asked again whether it has a patch: as long as devices may be sent to one that is gone. */
const rememberMs = 5000
const maxRemembered = 10_000

export type Downloads = {
  /** `isPublic`: a patch, which may be cached. */
  find: (key: string, options: { isPublic: boolean }) => Promise<StoredBlob | undefined>
  /** Has a patch that was just uploaded at hand, should the store go away. */
  keep: (key: string) => void
}

/** Where the bytes of a download are: in the store, or, while that is away, in the cache. */
export function createDownloads({ blobs, cache }: { blobs: BlobStore; cache: BlobCache | undefined }): Downloads {
  if (cache === undefined) return { find: async (key) => await blobs.find(key), keep: () => {} }
  const recent = new LRUCache<string, StoredBlob>({ max: maxRemembered, ttl: rememberMs })
  const findStored = async (key: string) => {
    const found = recent.get(key) ?? (await blobs.find(key))
    if (found !== undefined && !recent.has(key)) recent.set(key, found)
    return found
  }
  return {
    async find(key, { isPublic }) {
      if (!isPublic) return await blobs.find(key)
      try {
        const found = await findStored(key)
        const cached = await cache.find(key)
        if (found === undefined) {
          if (cached !== undefined) await cache.remove(key)
          return undefined
        }
        if (cached === undefined) cache.fill(key, found)
        return cached === undefined ? found : { ...cached, locate: found.locate }
      } catch (error) {
        const cached = error instanceof BlobsUnavailableError ? await cache.find(key) : undefined
        if (cached === undefined) throw error
        return cached
      }
    },
    keep(key) {
      findStored(key).then(
        (found) => found !== undefined && cache.fill(key, found),
        () => undefined,
      )
    },
  }
}
