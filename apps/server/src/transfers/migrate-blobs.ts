import type { BlobStore } from '../blobs/blob-store.ts'
import { copyBlob, type FinishedBlob, forEachBlob } from '../blobs/copy-blob.ts'
import type { Db } from '../db/connection.ts'
import { listFinishedBlobs } from './queries.ts'

const pageSize = 1000

/** Copies what is finished. One that cannot be copied does not keep the others from it. */
export async function migrateBlobs({ db, from, to }: { db: Db; from: BlobStore; to: BlobStore }) {
  const outcome = { copied: 0, present: 0, failures: [] as string[] }
  await from.check()
  await to.check()
  await forEachBlob(readFinishedBlobs(db), async (blob) => {
    try {
      const isCopied = await copyBlob(from, to, blob)
      if (isCopied) outcome.copied += 1
      else outcome.present += 1
      if (isCopied && !(await isThere(db, blob))) await to.remove(blob.key)
    } catch (error) {
      // The server has removed it meanwhile.
      if (await isThere(db, blob)) outcome.failures.push((error as Error).message)
    }
  })
  return outcome
}

async function isThere(db: Db, { key }: FinishedBlob): Promise<boolean> {
  return (await listFinishedBlobs(db, { fromKey: key, limit: 1 })).some((blob) => blob.key === key)
}

async function* readFinishedBlobs(db: Db): AsyncGenerator<FinishedBlob> {
  let fromKey = ''
  for (;;) {
    const page = await listFinishedBlobs(db, { fromKey, limit: pageSize })
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < pageSize) return
    // The smallest key that comes after it.
    fromKey = `${last.key}\u0001`
  }
}
