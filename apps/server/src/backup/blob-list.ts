import { open } from 'node:fs/promises'
import type { BlobStore } from '../blobs/blob-store.ts'
import type { FinishedBlob } from '../blobs/copy-blob.ts'

export const blobListName = 'blobs.tsv'

/** The blobs whose bytes an artifact has, by key. What no artifact refers to may be gone, and unfinished ones may change. */
export const finishedBlobs = `
  select key, size_bytes, sha256 from blobs
  where sha256 is not null and (
    exists (select from release_artifacts where blob_key = key) or exists (select from patch_artifacts where blob_key = key))
  order by key collate "C"`

export async function* readBlobList(path: string): AsyncGenerator<FinishedBlob> {
  await using file = await open(path)
  for await (const line of file.readLines()) {
    const [key = '', sizeBytes, sha256 = ''] = line.split('\t')
    yield { key, sizeBytes: Number(sizeBytes), sha256 }
  }
}

/** What a store has that is not in the list. Both are in the order of their keys. */
export async function* listOthers(store: BlobStore, listed: AsyncIterable<FinishedBlob>): AsyncGenerator<string> {
  const blobs = listed[Symbol.asyncIterator]()
  try {
    let next = await blobs.next()
    for await (const key of store.list()) {
      while (!next.done && next.value.key < key) next = await blobs.next()
      if (next.done || next.value.key !== key) yield key
    }
  } finally {
    await blobs.return?.()
  }
}
