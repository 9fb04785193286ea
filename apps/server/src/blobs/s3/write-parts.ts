import { randomBytes } from 'node:crypto'
import { BlobsUnavailableError, catchFailure, LostBytesError, type Parts } from '../blob-store.ts'
import type { Bucket } from './bucket.ts'
import { partBytes } from './location.ts'

/** Where the parts of unfinished blobs are. */
export const partsPrefix = 'uploads/'

export function toPartName(key: string, part: string): string {
  return `${partsPrefix}${key}/${part}`
}

/** How many parts a blob of this size has. */
export function countParts(sizeBytes: number): number {
  return Math.ceil(sizeBytes / partBytes)
}

/**
 * Stores what the source yields as objects of `partBytes`, each under a name of its own, so that no write touches what
 * another one has stored. A last part that is not full is stored as well, and again together with what follows it.
 */
export async function writeParts(
  bucket: Bucket,
  key: string,
  { offset, parts, source }: { offset: number; parts: Parts; source: AsyncIterable<Buffer> },
): Promise<{ writtenBytes: number; parts: Parts; failure: unknown }> {
  const buffered = await readTail(bucket, key, offset, parts)
  const stored = parts.slice(0, Math.floor(offset / partBytes))
  let [failure, storeFailure]: unknown[] = []
  let durableBytes = offset
  const store = async () => {
    const bytes = buffered.take()
    const part = randomBytes(8).toString('hex')
    await bucket.putPart(toPartName(key, part), bytes)
    durableBytes = stored.length * partBytes + bytes.length
    stored.push(part)
  }
  try {
    const pieces = catchFailure(source, (error) => {
      failure = error
    })
    for await (const piece of pieces) {
      for (let rest = piece; rest.length > 0; ) {
        rest = buffered.add(rest)
        if (buffered.isFull()) await store()
      }
    }
    if (stored.length * partBytes + buffered.length() > durableBytes) await store()
  } catch (error) {
    if (!(error instanceof BlobsUnavailableError)) throw error
    storeFailure = error
  }
  if (durableBytes === offset) return { writtenBytes: 0, parts, failure: storeFailure ?? failure }
  return { writtenBytes: durableBytes - offset, parts: stored, failure: storeFailure ?? failure }
}

/** The bytes from the last full part to `offset`. */
async function readTail(bucket: Bucket, key: string, offset: number, parts: Parts) {
  if (parts.length < countParts(offset)) throw new LostBytesError(`the bytes before ${offset} are missing`)
  const tailBytes = offset % partBytes
  const part = parts[Math.floor(offset / partBytes)]
  const buffered = createPartBuffer()
  if (tailBytes === 0 || part === undefined) return buffered
  const tail = await bucket.getBytes(toPartName(key, part), tailBytes)
  if (tail === undefined) throw new LostBytesError(`the bytes before ${offset} are missing`)
  buffered.add(tail)
  return buffered
}

/** Takes only as much memory as has arrived. */
function createPartBuffer() {
  let pieces: Buffer[] = []
  let length = 0
  return {
    length: () => length,
    isFull: () => length === partBytes,
    /** Answers what did not fit. */
    add(piece: Buffer): Buffer {
      const taken = piece.subarray(0, partBytes - length)
      pieces.push(taken)
      length += taken.length
      return piece.subarray(taken.length)
    },
    take(): Buffer {
      const bytes = Buffer.concat(pieces, length)
      pieces = []
      length = 0
      return bytes
    },
  }
}
