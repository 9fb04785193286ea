import type { BlobStore } from './blob-store.ts'
import type { BlobsLocation } from './blobs-location.ts'
import { createDiskBlobStore } from './disk-blob-store.ts'
import { createS3BlobStore } from './s3/s3-blob-store.ts'

export type DownloadOptions = {
  /** Base URL of a CDN in front of the bucket. */
  cdnUrl: string | undefined
  /** Devices cannot reach the bucket: bytes come through the service. */
  isProxied: boolean
}

export async function openBlobStore(at: BlobsLocation, downloads: DownloadOptions): Promise<BlobStore> {
  return at.kind === 'disk'
    ? await createDiskBlobStore({ dir: at.dir })
    : createS3BlobStore({ location: at.location, ...downloads })
}
