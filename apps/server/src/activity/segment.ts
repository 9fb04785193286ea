import type { ReleasePlatform } from '@godwit/contract'
import { writeClientKey } from './client-key.ts'

/**
 * What observations of one app have in common. Many devices share one, so that a record is 24 bytes however long the
 * names are.
 */
export type ObservationContext = {
  /** null: not reported. */
  release: string | null
  platform: ReleasePlatform
  /** The patch that runs where the request says so, 0 for the base release. undefined: what the device installed last. */
  running?: number
  /** The numbers of the release that the device is told to uninstall, ascending. */
  rolledBack: readonly number[]
  event?: {
    type: string
    patch: number
    /** The start of the hour in which it was received (ms). */
    receivedHourMs: number
  }
}

export const wordsPerRecord = 6
const bytesPerRecord = wordsPerRecord * 4
const formatVersion = 1
const headerBytes = 8
/** Two bytes of a record name its context. */
export const maxContexts = 65_536

/** The observations of one app that are committed together, while they are gathered. */
export type SegmentBuilder = {
  /** Returns the number by which records name the context. At most `maxContexts`. */
  addContext: (context: ObservationContext) => number
  add: (context: number, timeMs: number, clientId: string) => void
  contextCount: () => number
  count: () => number
  /** What it takes, about. */
  sizeBytes: () => number
  encode: () => Buffer
}

const initialRecords = 64

export function createSegmentBuilder(): SegmentBuilder {
  const contexts: ObservationContext[] = []
  let words = new Uint32Array(initialRecords * wordsPerRecord)
  let used = 0
  return {
    addContext: (context) => contexts.push(context) - 1,
    add: (context, timeMs, clientId) => {
      if (used === words.length) {
        const larger = new Uint32Array(words.length * 2)
        larger.set(words)
        words = larger
      }
      const high = Math.floor(timeMs / 2 ** 32)
      words[used] = context | (high << 16)
      words[used + 1] = timeMs - high * 2 ** 32
      writeClientKey(clientId, words, used + 2)
      used += wordsPerRecord
    },
    contextCount: () => contexts.length,
    count: () => used / wordsPerRecord,
    sizeBytes: () => used * 4 + contexts.length * 100,
    encode: () => {
      const names = Buffer.from(JSON.stringify(contexts))
      const header = Buffer.alloc(headerBytes)
      header.writeUInt32LE(formatVersion, 0)
      header.writeUInt32LE(names.length, 4)
      return Buffer.concat([header, names, Buffer.from(words.buffer, 0, used * 4)])
    },
  }
}

/** A segment that was read: record `index` has its key in `words` from `index * 6 + 2` on. */
export type Segment = { contexts: ObservationContext[]; words: Uint32Array; count: number }

/** Throws a RangeError for bytes that are no segment. */
export function decodeSegment(bytes: Uint8Array): Segment {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (buffer.readUInt32LE(0) !== formatVersion) throw new RangeError('a segment of an unknown format')
  const recordsFrom = headerBytes + buffer.readUInt32LE(4)
  const count = (buffer.length - recordsFrom) / bytesPerRecord
  if (!Number.isInteger(count)) throw new RangeError('a segment that is cut off')
  const contexts = JSON.parse(buffer.toString('utf8', headerBytes, recordsFrom)) as ObservationContext[]
  // Copied, because words must begin at a multiple of four.
  return {
    contexts,
    words: new Uint32Array(buffer.buffer.slice(buffer.byteOffset + recordsFrom, buffer.byteOffset + buffer.length)),
    count,
  }
}

export function contextOf(segment: Segment, index: number): number {
  return (segment.words[index * wordsPerRecord] ?? 0) & 0xffff
}

/** Unix time (ms). */
export function timeOf(segment: Segment, index: number): number {
  const at = index * wordsPerRecord
  return ((segment.words[at] ?? 0) >>> 16) * 2 ** 32 + (segment.words[at + 1] ?? 0)
}

export function keyOffsetOf(index: number): number {
  return index * wordsPerRecord + 2
}
