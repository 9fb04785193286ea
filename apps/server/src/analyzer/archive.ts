/** Bytes by position, such as a file or an object in a bucket. A read that comes short rejects. */
export type ByteSource = {
  sizeBytes: number
  /** `length` bytes from `offset` on, all within the source. */
  read: (offset: number, length: number) => Promise<Buffer>
}

/** A file in an archive. */
export type ArchiveEntry = {
  /** Its path, with `/`, as it stands in the archive. Nothing is ever written by it. */
  name: string
  /** What it says of its size without compression; reading verifies it. */
  sizeBytes: number
}

/** A zip archive, of which only what is asked for is read. */
export type Archive = {
  /** Every file, in the order of the archive. A name occurs once: an archive with two of the same is refused. */
  entries: ReadonlyMap<string, ArchiveEntry>
  /** A whole file. Throws an UnanalyzableError for one of more than `maxBytes`, and for one that lies about its size. */
  read: (entry: ArchiveEntry, maxBytes: number) => Promise<Buffer>
  /** Its first bytes: `length`, or all of a shorter one. No more than those are inflated. */
  readStart: (entry: ArchiveEntry, length: number) => Promise<Buffer>
}
