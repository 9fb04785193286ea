import type { Readable } from 'node:stream'

/**
 * Where bytes are kept, by content-free keys that the service generates (lower-case letters and digits, never user
 * input). A blob is received in one or more writes, finished once, and then never changes.
 */
export type BlobStore = {
  /**
   * Stores what the source yields from `offset` of the unfinished blob on. Returns how many bytes are durable there,
   * also when the source fails midway (`failure` is then what it threw); rejects when the store itself fails. The same
   * bytes may be written again.
   */
  write: (
    key: string,
    input: { offset: number; source: AsyncIterable<Buffer> },
  ) => Promise<{ writtenBytes: number; failure: unknown }>
  /** SHA-256 in lower-case hex of the blob, finished or not; undefined when fewer than `sizeBytes` bytes are there. */
  hash: (key: string, sizeBytes: number) => Promise<string | undefined>
  /** Makes an unfinished blob of exactly `sizeBytes` readable. Doing it again changes nothing. */
  finish: (key: string, sizeBytes: number) => Promise<void>
  /** Size in bytes of a finished blob, or undefined when there is none. */
  findSize: (key: string) => Promise<number | undefined>
  /** Bytes `start` to `end` (inclusive, at least one byte) of a finished blob. */
  read: (key: string, range: { start: number; end: number }) => Readable
  /** Forgets what an unfinished blob has received. A finished blob stays. */
  discard: (key: string) => Promise<void>
  /** Keys of the finished blobs, in the order of their characters. */
  list: () => AsyncIterable<string>
  /** Removes the blob, finished or not. Removing what is not there is no error. */
  remove: (key: string) => Promise<void>
}
