import { PassThrough, pipeline, type Readable } from 'node:stream'
import { createDurations, type Durations, secondsSince } from '../telemetry/durations.ts'
import type { BlobStore } from './blob-store.ts'

const operations = ['write', 'hash', 'finish', 'findSize', 'read', 'discard', 'remove'] as const
type Operation = (typeof operations)[number]

export type OperationMeasures = { operation: Operation; durations: Durations; errors: number }

/** A store that counts what it did. What its callers are at fault for, such as a source that breaks off, is no error. */
export type MeasuredBlobStore = BlobStore & {
  measure: () => { operations: OperationMeasures[]; readBytes: number; writtenBytes: number }
}

export function measureBlobStore<Store extends BlobStore>(store: Store): Store & MeasuredBlobStore {
  const counts = new Map<Operation, OperationMeasures>(
    operations.map((operation) => [operation, { operation, durations: createDurations(), errors: 0 }]),
  )
  const bytes = { read: 0, written: 0 }
  const settle = (operation: Operation, seconds: number, hasFailed: boolean) => {
    const count = counts.get(operation)
    count?.durations.add(seconds)
    if (count !== undefined && hasFailed) count.errors += 1
  }
  const time =
    <Args extends unknown[], Result>(operation: Operation, run: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      const startedAtMs = performance.now()
      let hasFailed = true
      try {
        const result = await run(...args)
        hasFailed = false
        return result
      } finally {
        settle(operation, secondsSince(startedAtMs), hasFailed)
      }
    }
  const write: BlobStore['write'] = async (key, { offset, source }) => {
    const startedAtMs = performance.now()
    const waited = { seconds: 0 }
    let hasFailed = true
    try {
      const written = await store.write(key, { offset, source: watchSource(source, waited) })
      hasFailed = false
      bytes.written += written.writtenBytes
      return written
    } finally {
      settle('write', Math.max(0, secondsSince(startedAtMs) - waited.seconds), hasFailed)
    }
  }
  const read: BlobStore['read'] = (key, range) =>
    watchReading(store.read(key, range), {
      onBytes: (sizeBytes) => {
        bytes.read += sizeBytes
      },
      onSettled: (seconds, hasFailed) => settle('read', seconds, hasFailed),
    })
  const timed = {
    write,
    read,
    hash: time('hash', (key, sizeBytes) => store.hash(key, sizeBytes)),
    finish: time('finish', (key, sizeBytes) => store.finish(key, sizeBytes)),
    findSize: time('findSize', (key) => store.findSize(key)),
    discard: time('discard', (key) => store.discard(key)),
    remove: time('remove', (key) => store.remove(key)),
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
  tell: { onBytes: (sizeBytes: number) => void; onSettled: (seconds: number, hasFailed: boolean) => void },
): Readable {
  const startedAtMs = performance.now()
  let firstAfter: number | undefined
  const watched = new PassThrough({
    transform: (chunk: Buffer, _, done) => {
      firstAfter ??= secondsSince(startedAtMs)
      tell.onBytes(chunk.length)
      done(null, chunk)
    },
  })
  let hasFailed = false
  source.once('error', (error: NodeJS.ErrnoException) => {
    hasFailed = error.code !== 'ERR_STREAM_PREMATURE_CLOSE' && error.name !== 'AbortError'
  })
  return pipeline(source, watched, () => tell.onSettled(firstAfter ?? secondsSince(startedAtMs), hasFailed))
}
