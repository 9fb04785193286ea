import type { BlobStore } from '../blob-store.ts'
import type { Bucket, Dated } from './bucket.ts'
import { blobsPrefix } from './finish-blob.ts'
import { mapConcurrently } from './map-concurrently.ts'
import { partsPrefix } from './write-parts.ts'

type Options = Parameters<BlobStore['removeLeftovers']>[0]

/** Parts that nobody completed, and multipart uploads, of blobs that receive nothing any more. */
export async function removeLeftovers(bucket: Bucket, options: Options): Promise<number> {
  let removed = 0
  for await (const page of bucket.list(partsPrefix)) {
    const leftovers = await chooseLeftovers(page, partsPrefix, options)
    await mapConcurrently(leftovers, async ({ name }) => await bucket.remove(name))
    removed += leftovers.length
  }
  for await (const page of bucket.listMultiparts(blobsPrefix)) {
    const leftovers = await chooseLeftovers(page, blobsPrefix, options)
    await mapConcurrently(leftovers, async ({ name, uploadId }) => await bucket.abortMultipart(name, uploadId))
    removed += leftovers.length
  }
  return removed
}

async function chooseLeftovers<Item extends Dated>(page: Item[], prefix: string, options: Options): Promise<Item[]> {
  const toKey = ({ name }: Item) => name.slice(prefix.length).split('/')[0] ?? ''
  const old = page.filter(({ at }) => at < options.before)
  if (old.length === 0) return []
  const unfinished = await options.findUnfinished([...new Set(old.map(toKey))])
  return old.filter((item) => !unfinished.has(toKey(item)))
}
