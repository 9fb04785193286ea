import { type BlobStore, BlobsUnavailableError } from './blob-store.ts'

/** The first store; what it does not have is read of the second, from which blobs are being moved. */
export function withFallback(first: BlobStore, second: BlobStore): BlobStore {
  const find: BlobStore['find'] = async (key) => {
    try {
      return (await first.find(key)) ?? (await second.find(key))
    } catch (error) {
      const found = error instanceof BlobsUnavailableError ? await second.find(key) : undefined
      if (found === undefined) throw error
      return found
    }
  }
  const hasOnlySecond = async (key: string) =>
    (await first.find(key)) === undefined && (await second.find(key)) !== undefined
  return {
    ...first,
    find,
    // Bytes of an unfinished blob that the second store has received are of no use: their upload starts again.
    hash: async (key, input) => await ((await hasOnlySecond(key)) ? second : first).hash(key, input),
    async finish(key, input) {
      if (!(await hasOnlySecond(key))) await first.finish(key, input)
    },
    async remove(key) {
      await first.remove(key)
      await second.remove(key)
    },
    list: () => unite(first.list(), second.list()),
    async removeLeftovers(options) {
      return (await first.removeLeftovers(options)) + (await second.removeLeftovers(options))
    },
  }
}

/** Both are in order, and so is what comes of them. */
async function* unite(first: AsyncIterable<string>, second: AsyncIterable<string>): AsyncGenerator<string> {
  const others = second[Symbol.asyncIterator]()
  let other = await others.next()
  for await (const key of first) {
    for (; other.done !== true && other.value <= key; other = await others.next()) {
      if (other.value < key) yield other.value
    }
    yield key
  }
  for (; other.done !== true; other = await others.next()) yield other.value
}
