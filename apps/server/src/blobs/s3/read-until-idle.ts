import { Readable } from 'node:stream'
import { BlobsUnavailableError } from '../blob-store.ts'

/** A store that gives no byte for so long has stopped. */
const idleMs = 15_000

/** The bytes of an answer, for as long as they come. Time in which nobody reads does not count. */
export function readUntilIdle(body: Readable): Readable {
  // Until the first read nobody else would hear of a connection that broke, and the process would end.
  body.on('error', () => undefined)
  return Readable.from(readPieces(body), { objectMode: false })
}

async function* readPieces(body: Readable): AsyncGenerator<Buffer> {
  const pieces = body[Symbol.asyncIterator]()
  let timer: NodeJS.Timeout | undefined
  try {
    for (;;) {
      timer = setTimeout(() => body.destroy(new Error(`no byte for ${idleMs / 1000} s`)), idleMs)
      const { value, done } = await pieces.next()
      clearTimeout(timer)
      if (done === true) return
      yield value
    }
  } catch (error) {
    throw new BlobsUnavailableError(`read: ${(error as Error).message}`, { cause: error })
  } finally {
    clearTimeout(timer)
    body.destroy()
  }
}
