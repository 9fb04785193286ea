import { createHash } from 'node:crypto'
import { type BlobStore, BlobsUnavailableError, checkKey, type Parts, type StoredBlob } from '../blob-store.ts'
import { type Bucket, openBucket } from './bucket.ts'
import { blobsPrefix, finishBlob, toBlobName } from './finish-blob.ts'
import { limitConcurrency } from './limit-concurrency.ts'
import { partBytes, type S3Location } from './location.ts'
import { mapConcurrently } from './map-concurrently.ts'
import { removeLeftovers } from './remove-leftovers.ts'
import { countParts, partsPrefix, toPartName, writeParts } from './write-parts.ts'

/** How long a redirect to the bucket may be followed. A device that resumes later asks us again. */
const signedForSeconds = 900

/** Each write has up to 8 MiB in memory. */
const maxWrites = 32
/** A write that has not begun by then is refused. */
const writeWaitMs = 10_000

/** What may be read of the bucket at a time: a slow reader keeps a connection for as long as it reads. */
const maxReads = 256

type Options = {
  location: S3Location
  /** Base URL of a CDN in front of the bucket. */
  cdnUrl: string | undefined
  /** The devices cannot reach the bucket: bytes come through the service. */
  isProxied: boolean
}

/** Blobs as objects: finished ones under `blobs/`, the parts of unfinished ones under `uploads/`. */
export function createS3BlobStore({ location, cdnUrl, isProxied }: Options): BlobStore {
  const bucket = openBucket(location)
  const writes = limitConcurrency({ limit: maxWrites, waitMs: writeWaitMs })
  const reads = limitConcurrency({ limit: maxReads, waitMs: 0 })

  const find = async (key: string): Promise<StoredBlob | undefined> => {
    const name = toBlobName(checkKey(key))
    const info = await bucket.head(name)
    if (info === undefined) return undefined
    return {
      sizeBytes: info.sizeBytes,
      async read(range) {
        const release = await reads.acquire('read')
        try {
          const bytes = await bucket.get(name, range, info.etag)
          return bytes.once('close', release)
        } catch (error) {
          release()
          throw error
        }
      },
      async locate({ isPublic }) {
        if (isProxied) return undefined
        if (isPublic && cdnUrl !== undefined) return `${cdnUrl}/${bucket.objectKey(name)}`
        const cacheControl = isPublic ? 'public, max-age=31536000, immutable, no-transform' : 'private, no-transform'
        return await bucket.sign(name, { expiresInSeconds: signedForSeconds, cacheControl })
      },
    }
  }

  const dropParts = async (key: string, parts: Parts) => {
    const names = parts.map((part) => toPartName(checkKey(key), part))
    await mapConcurrently(names, bucket.remove).catch((error: unknown) => {
      if (!(error instanceof BlobsUnavailableError)) throw error
    })
  }

  return {
    find,
    dropParts,
    discard: dropParts,
    async write(key, input) {
      const release = await writes.acquire('write')
      try {
        return await writeParts(bucket, checkKey(key), input)
      } finally {
        release()
      }
    },
    async hash(key, { sizeBytes, parts }) {
      if (sizeBytes === 0) return createHash('sha256').digest('hex')
      const hashFinished = async () => {
        const found = await find(key)
        return found === undefined ? 'none' : await hashBlob(found, sizeBytes)
      }
      const finished = await hashFinished()
      if (finished !== 'none') return finished
      const unfinished = await hashParts(bucket, key, sizeBytes, parts)
      if (unfinished !== undefined) return unfinished
      // The parts go when another instance has finished.
      const finishedMeanwhile = await hashFinished()
      return finishedMeanwhile === 'none' ? undefined : finishedMeanwhile
    },
    async finish(key, blob) {
      await finishBlob(bucket, checkKey(key), blob)
      await dropParts(key, blob.parts)
    },
    async *list() {
      for await (const page of bucket.list(blobsPrefix)) yield* page.map(({ name }) => name.slice(blobsPrefix.length))
    },
    async remove(key) {
      const name = toBlobName(checkKey(key))
      await bucket.remove(name)
      for await (const page of bucket.list(`${partsPrefix}${key}/`)) {
        await mapConcurrently(page, async (part) => await bucket.remove(part.name))
      }
      for await (const page of bucket.listMultiparts(name)) {
        await mapConcurrently(page, async ({ uploadId }) => await bucket.abortMultipart(name, uploadId))
      }
    },
    removeLeftovers: async (options) => await removeLeftovers(bucket, options),
    check: bucket.check,
  }
}

async function hashBlob(blob: StoredBlob, sizeBytes: number): Promise<string | undefined> {
  if (blob.sizeBytes < sizeBytes) return undefined
  const hash = createHash('sha256')
  for await (const piece of await blob.read({ start: 0, end: sizeBytes - 1 })) hash.update(piece)
  return hash.digest('hex')
}

async function hashParts(bucket: Bucket, key: string, sizeBytes: number, parts: Parts): Promise<string | undefined> {
  if (parts.length < countParts(sizeBytes)) return undefined
  const hash = createHash('sha256')
  for (const [index, part] of parts.entries()) {
    const length = Math.min(partBytes, sizeBytes - index * partBytes)
    const bytes = await bucket.getBytes(toPartName(key, part), length)
    if (bytes === undefined) return undefined
    hash.update(bytes)
  }
  return hash.digest('hex')
}
