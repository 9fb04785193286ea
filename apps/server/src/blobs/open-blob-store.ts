import type { Logger } from 'pino'
import { type BlobCache, createBlobCache } from './blob-cache.ts'
import type { BlobStore } from './blob-store.ts'
import type { BlobsLocation } from './blobs-location.ts'
import { createDiskBlobStore } from './disk-blob-store.ts'
import { withFallback } from './fallback-blob-store.ts'

export type DownloadOptions = {
  /** Base URL of a CDN in front of the bucket. */
  cdnUrl: string | undefined
  /** Devices cannot reach the bucket: bytes come through the service. */
  isProxied: boolean
}

export async function openBlobStore(at: BlobsLocation, downloads: DownloadOptions): Promise<BlobStore> {
  if (at.kind === 'disk') return await createDiskBlobStore({ dir: at.dir })
  // Who has no bucket does not wait for its library at every start.
  const { createS3BlobStore } = await import('./s3/s3-blob-store.ts')
  return createS3BlobStore({ location: at.location, ...downloads })
}

type BlobSettings = {
  blobs: BlobsLocation
  blobsFallback: BlobsLocation | undefined
  downloads: DownloadOptions
  blobCacheDir: string
  maxBlobCacheBytes: number
}

/** The blobs of an installation, wherever they are. */
export async function openBlobs({ blobs, blobsFallback, downloads }: BlobSettings): Promise<BlobStore> {
  const store = await openBlobStore(blobs, downloads)
  // The CDN has the new place behind it.
  return blobsFallback === undefined
    ? store
    : withFallback(store, await openBlobStore(blobsFallback, { ...downloads, cdnUrl: undefined }))
}

/** What is on a disk needs no copy on a disk. */
export async function openBlobCache(settings: BlobSettings, log: Logger): Promise<BlobCache | undefined> {
  const { blobs, blobCacheDir: dir, maxBlobCacheBytes: maxBytes } = settings
  return blobs.kind === 'disk' || maxBytes === 0 ? undefined : await createBlobCache({ dir, maxBytes, log })
}
