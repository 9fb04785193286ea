import type { Parts } from '../blob-store.ts'
import type { Bucket, ObjectInfo } from './bucket.ts'
import { isNotFound, isTaken } from './connection.ts'
import { partBytes } from './location.ts'
import { mapConcurrently } from './map-concurrently.ts'
import { toPartName } from './write-parts.ts'

/** Where finished blobs are. */
export const blobsPrefix = 'blobs/'

export function toBlobName(key: string): string {
  return `${blobsPrefix}${key}`
}

type Finished = { sizeBytes: number; sha256: string; parts: Parts }

/**
 * Makes one object of the parts, within the store unless there is but one. The object appears as a whole or not at all, and
 * only if there is none: of two instances that finish, one makes it and both find it.
 */
export async function finishBlob(bucket: Bucket, key: string, blob: Finished): Promise<void> {
  const name = toBlobName(key)
  let found = await bucket.head(name)
  if (found === undefined) {
    await compose(bucket, key, blob)
    found = await bucket.head(name)
  }
  if (found === undefined || !isSame(found, blob)) {
    throw new Error(`blob ${key}: ${found?.sizeBytes} bytes instead of ${blob.sizeBytes}, or other bytes`)
  }
}

function isSame(found: ObjectInfo, blob: Finished): boolean {
  return found.sizeBytes === blob.sizeBytes && found.sha256 === blob.sha256
}

async function compose(bucket: Bucket, key: string, blob: Finished): Promise<void> {
  const names = blob.parts.map((part) => toPartName(key, part))
  try {
    await checkSize(bucket, key, blob, names)
    if (names.length <= 1) await putWhole(bucket, key, blob, names[0])
    else await copyParts(bucket, key, blob, names)
  } catch (error) {
    // Another instance was faster, and may have removed the parts.
    if (!isTaken(error) && !isNotFound(error)) throw error
  }
}

async function checkSize(bucket: Bucket, key: string, { sizeBytes }: Finished, names: string[]): Promise<void> {
  const last = names.at(-1)
  const lastBytes = last === undefined ? 0 : (await bucket.head(last))?.sizeBytes
  if (lastBytes === undefined) return
  const storedBytes = Math.max(0, names.length - 1) * partBytes + lastBytes
  if (storedBytes !== sizeBytes) throw new Error(`blob ${key}: ${storedBytes} bytes instead of ${sizeBytes}`)
}

async function putWhole(bucket: Bucket, key: string, { sizeBytes, sha256 }: Finished, name: string | undefined) {
  const bytes = name === undefined ? Buffer.alloc(0) : await bucket.getBytes(name, sizeBytes)
  if (bytes !== undefined) await bucket.putBlob(toBlobName(key), bytes, sha256)
}

async function copyParts(bucket: Bucket, key: string, { sha256 }: Finished, names: string[]): Promise<void> {
  const blobName = toBlobName(key)
  const uploadId = await bucket.startMultipart(blobName, sha256)
  try {
    const copied = await mapConcurrently(
      names,
      async (name, index) => await bucket.copyPart(blobName, uploadId, index + 1, name),
    )
    await bucket.completeMultipart(blobName, uploadId, copied)
  } catch (error) {
    // What cannot be aborted now is left over.
    await bucket.abortMultipart(blobName, uploadId).catch(() => undefined)
    throw error
  }
}
