import { PassThrough, pipeline, type Readable } from 'node:stream'
import { createDurations, type Durations, secondsSince } from '../telemetry/durations.ts'
import { nameFailure, type Tracing } from '../telemetry/tracing.ts'
import { type BlobStore, BlobsUnavailableError, type StoredBlob } from './blob-store.ts'

const operations = ['write', 'hash', 'finish', 'find', 'read', 'discard', 'remove'] as const
type Operation = (typeof operations)[number]

export type OperationMeasures = { operation: Operation; durations: Durations; errors: number }

/** A store that counts what it did. What its callers are at fault for, such as a source that breaks off, is no error. */
export type MeasuredBlobStore = BlobStore & {
  measure: () => { operations: OperationMeasures[]; readBytes: number; writtenBytes: number }
}

export function measureBlobStore<Store extends BlobStore>(
  store: Store,
  { tracing }: { tracing?: Tracing | undefined } = {},
): Store & MeasuredBlobStore {
  const counts = new Map<Operation, OperationMeasures>(
    operations.map((operation) => [operation, { operation, durations: createDurations(), errors: 0 }]),
  )
  const bytes = { read: 0, written: 0 }
  /** To be called with what the operation took, and with the error when it failed. */
  const begin = (operation: Operation) => {
    const span = tracing?.startChild({ name: `blob ${operation}`, isCall: true })
    return (seconds: number, error?: unknown) => {
      const count = counts.get(operation)
      count?.durations.add(seconds)
      if (count !== undefined && error !== undefined) count.errors += 1
      span?.end({ failure: error === undefined ? undefined : nameFailure(error) })
    }
  }
  const time =
    <Args extends unknown[], Result>(operation: Operation, run: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      const startedAtMs = performance.now()
      const settle = begin(operation)
      try {
        const result = await run(...args)
        settle(secondsSince(startedAtMs))
        return result
      } catch (error) {
        settle(secondsSince(startedAtMs), error)
        throw error
      }
    }
  const write: BlobStore['write'] = async (key, { source, ...input }) => {
    const startedAtMs = performance.now()
    const settle = begin('write')
    const waited = { seconds: 0 }
    const seconds = () => Math.max(0, secondsSince(startedAtMs) - waited.seconds)
    try {
      const written = await store.write(key, { ...input, source: watchSource(source, waited) })
      bytes.written += written.writtenBytes
      settle(seconds(), written.failure instanceof BlobsUnavailableError ? written.failure : undefined)
      return written
    } catch (error) {
      settle(seconds(), error)
      throw error
    }
  }
  const find = time('find', (key: string) => store.find(key))
  const read: (blob: StoredBlob) => StoredBlob['read'] = (blob) => async (range) => {
    const startedAtMs = performance.now()
    const settle = begin('read')
    try {
      const onBytes = (sizeBytes: number) => {
        bytes.read += sizeBytes
      }
      return watchReading(await blob.read(range), { startedAtMs, onBytes, onSettled: settle })
    } catch (error) {
      settle(secondsSince(startedAtMs), error)
      throw error
    }
  }
  const timed = {
    write,
    async find(key) {
      const blob = await find(key)
      return blob === undefined ? undefined : { ...blob, read: read(blob) }
    },
    hash: time('hash', (...input) => store.hash(...input)),
    finish: time('finish', (...input) => store.finish(...input)),
    discard: time('discard', (...input) => store.discard(...input)),
    remove: time('remove', (...input) => store.remove(...input)),
  } satisfies Partial<BlobStore>
  return {
    ...store,
    ...timed,
    measure: () => ({ operations: [...counts.values()], readBytes: bytes.read, writtenBytes: bytes.written }),
  }
}

/** A slow upload is no slow store: what was waited for the source is left out. */
async function* watchSource(source: AsyncIterable<Buffer>, waited: { seconds: number }) {
  let askedAtMs = performance.now()
  for await (const chunk of source) {
    waited.seconds += secondsSince(askedAtMs)
    yield chunk
    askedAtMs = performance.now()
  }
  waited.seconds += secondsSince(askedAtMs)
}

/** Tells how long the first bytes took, for the rest may wait for a slow reader, and whether all of them came. */
function watchReading(
  source: Readable,
  tell: {
    startedAtMs: number
    onBytes: (sizeBytes: number) => void
    onSettled: (seconds: number, error?: unknown) => void
  },
): Readable {
  const { startedAtMs } = tell
  let firstAfter: number | undefined
  const watched = new PassThrough({
    transform: (chunk: Buffer, _, done) => {
      firstAfter ??= secondsSince(startedAtMs)
      tell.onBytes(chunk.length)
      done(null, chunk)
    },
  })
  let failure: unknown
  source.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE' && error.name !== 'AbortError') failure = error
  })
  return pipeline(source, watched, () => tell.onSettled(firstAfter ?? secondsSince(startedAtMs), failure))
}
