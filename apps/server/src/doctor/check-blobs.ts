import { createHash, randomBytes } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import type { BlobStore, Parts } from '../blobs/blob-store.ts'
import { describe, type Finding } from './finding.ts'
import { randomHex } from './random-hex.ts'

const check = 'blobs'
/** A bucket keeps unfinished blobs in parts of 8 MiB, and makes one of them in another way than of a single one. */
const pieceSizes = [8 * 1024 ** 2, 64 * 1024]
const sizeBytes = pieceSizes.reduce((sum, size) => sum + size, 0)
const range = { start: 1000, end: 1999 }

/** Stores a blob in two pieces, as uploads come, reads a part of it, and removes it. */
export async function checkBlobs(openStore: () => Promise<BlobStore>): Promise<Finding[]> {
  const startedAt = performance.now()
  try {
    await probe(await openStore())
    const found = `a blob was written, read and removed in ${Math.round(performance.now() - startedAt)} ms`
    return [{ check, result: 'ok', found }]
  } catch (error) {
    const mend = 'See that GODWIT_BLOBS names a place where the server may write, read, list and delete.'
    return [{ check, result: 'failure', found: `the blob store cannot be used: ${describe(error)}`, mend }]
  }
}

async function probe(blobs: BlobStore): Promise<void> {
  const key = randomHex()
  const bytes = randomBytes(sizeBytes)
  let parts: Parts = []
  let offset = 0
  try {
    for (const pieceBytes of pieceSizes) {
      const source = yieldOnce(bytes.subarray(offset, offset + pieceBytes))
      const written = await blobs.write(key, { offset, parts, source })
      const { writtenBytes, failure } = written
      if (writtenBytes !== pieceBytes)
        throw new Error(`${writtenBytes} of ${pieceBytes} bytes were stored`, { cause: failure })
      parts = written.parts
      offset += pieceBytes
    }
    await blobs.finish(key, { sizeBytes, sha256: createHash('sha256').update(bytes).digest('hex'), parts })
    const found = await blobs.find(key)
    if (found?.sizeBytes !== sizeBytes) throw new Error('what was written is not there')
    const read = await buffer(await found.read(range))
    if (!read.equals(bytes.subarray(range.start, range.end + 1)))
      throw new Error('other bytes are read than were written')
  } catch (error) {
    // What failed first is told, and not that this fails as well.
    await blobs.remove(key).catch(() => undefined)
    throw error
  }
  await blobs.remove(key)
  if ((await blobs.find(key)) !== undefined) throw new Error('what was removed is still there')
}

async function* yieldOnce(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}
