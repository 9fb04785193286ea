import type { Readable } from 'node:stream'

/** What a store names the pieces of an unfinished blob by. Kept beside the count of its bytes, and opaque to all others. */
export type Parts = readonly string[]

/** A finished blob, which never changes. */
export type StoredBlob = {
  sizeBytes: number
  /** Bytes `start` to `end` (inclusive, at least one byte). Resolves once the store has begun to give them. */
  read: (range: { start: number; end: number }) => Promise<Readable>
  /**
   * Where its bytes can be had without the service, for some minutes; undefined when they cannot. `isPublic`: whoever
   * asks may have them for good.
   */
  locate: (options: { isPublic: boolean }) => Promise<string | undefined>
}

/**
 * Where bytes are kept, by content-free keys that the service generates (lower-case letters and digits, never user
 * input). A blob is received in one or more writes, finished once, and then never changes. Rejects with
 * BlobsUnavailableError when the store cannot be reached, or does not do what it is asked.
 */
export type BlobStore = {
  /**
   * Stores what the source yields from `offset` of the unfinished blob on, whose bytes before are in `parts`. Returns how
   * many bytes are durable there, also when the source or the store fails midway (`failure` is then what was thrown). They
   * count only together with the returned `parts`: of two writes at the same place one comes to nothing. Rejects with
   * LostBytesError when the bytes before are gone.
   */
  write: (
    key: string,
    input: { offset: number; parts: Parts; source: AsyncIterable<Buffer> },
  ) => Promise<{ writtenBytes: number; parts: Parts; failure: unknown }>
  /** SHA-256 in lower-case hex of the blob, finished or not; undefined when fewer than `sizeBytes` bytes are there. */
  hash: (key: string, input: { sizeBytes: number; parts: Parts }) => Promise<string | undefined>
  /** Makes an unfinished blob of exactly `sizeBytes` readable, which `hash` has seen. Doing it again changes nothing. */
  finish: (key: string, input: { sizeBytes: number; sha256: string; parts: Parts }) => Promise<void>
  /** undefined when there is no finished blob. */
  find: (key: string) => Promise<StoredBlob | undefined>
  /** Forgets what an unfinished blob has received. A finished blob stays. */
  discard: (key: string, parts: Parts) => Promise<void>
  /** Removes pieces that no longer count. Those that cannot be removed now are left over. */
  dropParts: (key: string, parts: Parts) => Promise<void>
  /** Keys of the finished blobs, in the order of their characters. */
  list: () => AsyncIterable<string>
  /** Removes the blob, finished or not. Removing what is not there is no error. */
  remove: (key: string) => Promise<void>
  /**
   * Removes what crashes have left over, if it is from before `before` and belongs to none of the blobs that
   * `findUnfinished` picks out of those that it is asked about. Answers how many pieces.
   */
  removeLeftovers: (options: {
    before: Date
    findUnfinished: (keys: string[]) => Promise<Set<string>>
  }) => Promise<number>
  /** Rejects with the reason when the store cannot be used. */
  check: () => Promise<void>
}

/** The store is away, or refuses us: later it may answer. */
export class BlobsUnavailableError extends Error {}

/** Bytes that were counted as durable are not there: the upload has to start again. */
export class LostBytesError extends Error {}

/** Keys become paths. They are the service's own, yet nothing that could lead elsewhere ever gets that far. */
export const keyPattern = /^[0-9a-z]{8,128}$/

export function checkKey(key: string): string {
  if (!keyPattern.test(key)) throw new Error('not the key of a blob')
  return key
}

/** Ends where the source fails, and tells. What the consumer throws does not come through here. */
export async function* catchFailure(source: AsyncIterable<Buffer>, onFailure: (error: unknown) => void) {
  try {
    yield* source
  } catch (error) {
    onFailure(error)
  }
}
