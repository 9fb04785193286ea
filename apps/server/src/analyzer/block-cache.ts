import type { ByteSource } from './archive.ts'

export const blockBytes = 256 * 1024
/** What is kept: 4 MB. */
const keptBlocks = 16
/** Blocks that follow one another and are both missing come with one read, of at most this many. */
const joinedBlocks = 4

/** The most that one read of a cache, and one read that a cache makes of its source, is about (bytes). */
export const maxReadBytes = joinedBlocks * blockBytes

/**
 * Reads in whole blocks and keeps the last ones. A zip archive is read in pieces of some fifty bytes: without this, a
 * list of 300,000 entries would be 600,000 requests to a bucket.
 */
export type BlockCache = {
  sizeBytes: number
  /** At most `maxReadBytes`, all within the source. */
  read: (offset: number, length: number) => Promise<Buffer>
  /** The same when it takes no reading: a promise for every piece would cost more than what is in it. */
  readKept: (offset: number, length: number) => Buffer | undefined
}

type Block = { loading: Promise<Buffer>; bytes?: Buffer }

export function createBlockCache(source: ByteSource): BlockCache {
  /** The one that was used last comes last. */
  const blocks = new Map<number, Block>()

  const touch = (index: number): Block | undefined => {
    const block = blocks.get(index)
    if (block === undefined) return undefined
    blocks.delete(index)
    blocks.set(index, block)
    return block
  }

  const load = (first: number, count: number): void => {
    const start = first * blockBytes
    const length = Math.min(count * blockBytes, source.sizeBytes - start)
    const loading = source.read(start, length)
    for (let index = 0; index < count; index++) {
      const block: Block = {
        // A copy: a part of what was read would keep all of it.
        loading: loading.then((bytes) => Buffer.from(bytes.subarray(index * blockBytes, (index + 1) * blockBytes))),
      }
      block.loading.then(
        (bytes) => {
          block.bytes = bytes
        },
        () => {
          // Whoever asks again gets another try.
          if (blocks.get(first + index) === block) blocks.delete(first + index)
        },
      )
      blocks.set(first + index, block)
    }
  }

  const readKept = (offset: number, length: number): Buffer | undefined => {
    const index = Math.floor(offset / blockBytes)
    const from = offset - index * blockBytes
    // What lies across two blocks is rare enough to go the other way.
    if (from + length > blockBytes) return undefined
    return touch(index)?.bytes?.subarray(from, from + length)
  }

  const read = async (offset: number, length: number): Promise<Buffer> => {
    if (length === 0) return Buffer.alloc(0)
    const first = Math.floor(offset / blockBytes)
    const last = Math.floor((offset + length - 1) / blockBytes)
    for (let index = first; index <= last; index++) {
      if (touch(index) !== undefined) continue
      let count = 1
      while (count < joinedBlocks && index + count <= last && !blocks.has(index + count)) count++
      load(index, count)
      index += count - 1
    }
    const needed = Array.from({ length: last - first + 1 }, (_, index) => blocks.get(first + index)?.loading)
    for (const index of blocks.keys()) {
      if (blocks.size <= keptBlocks) break
      blocks.delete(index)
    }
    const from = offset - first * blockBytes
    const found = (await Promise.all(needed)).filter((bytes) => bytes !== undefined)
    return found.length === 1 && found[0] !== undefined
      ? found[0].subarray(from, from + length)
      : Buffer.concat(found).subarray(from, from + length)
  }

  return { sizeBytes: source.sizeBytes, read, readKept }
}
