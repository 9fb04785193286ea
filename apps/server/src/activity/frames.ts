import { crc32 } from 'node:zlib'
import type { ReceivedEvent } from '../devices/queries.ts'

/** A segment on its way to the database. */
export type SegmentBytes = { appId: string; bytes: Buffer; count: number }

export type FrameContents = { segments: SegmentBytes[]; events: ReceivedEvent[] }

/** What is committed as a whole or not at all. Numbers of a writer ascend from 1, by which it is committed once. */
export type Frame = FrameContents & { writerId: string; number: number }

type Head = {
  writerId: string
  number: number
  segments: { appId: string; sizeBytes: number; count: number }[]
  events: ReceivedEvent[]
}

const prefixBytes = 8

/** Length and CRC-32 of the rest; length of the head; the head as JSON; the bytes of the segments. */
export function encodeFrame({ writerId, number, segments, events }: Frame): Buffer {
  const head: Head = {
    writerId,
    number,
    segments: segments.map(({ appId, bytes, count }) => ({ appId, sizeBytes: bytes.length, count })),
    events,
  }
  const json = Buffer.from(JSON.stringify(head))
  const buffer = Buffer.concat([Buffer.alloc(prefixBytes + 4), json, ...segments.map(({ bytes }) => bytes)])
  buffer.writeUInt32LE(json.length, prefixBytes)
  buffer.writeUInt32LE(buffer.length - prefixBytes, 0)
  buffer.writeUInt32LE(crc32(buffer.subarray(prefixBytes)), 4)
  return buffer
}

/** The size of the frame that begins here, as far as its first bytes tell. */
export function readFrameSize(prefix: Buffer): number | undefined {
  return prefix.length < prefixBytes ? undefined : prefixBytes + prefix.readUInt32LE(0)
}

/** undefined when the frame is not whole: its writer died while it wrote, or the disk lies. */
export function decodeFrame(buffer: Buffer): Frame | undefined {
  const sizeBytes = readFrameSize(buffer)
  if (sizeBytes === undefined || sizeBytes < prefixBytes + 4 || sizeBytes > buffer.length) return undefined
  const rest = buffer.subarray(prefixBytes, sizeBytes)
  if (crc32(rest) !== buffer.readUInt32LE(4)) return undefined
  let at = 4 + rest.readUInt32LE(0)
  const head = JSON.parse(rest.toString('utf8', 4, at)) as Head
  const segments = head.segments.map(({ appId, sizeBytes, count }) => {
    const bytes = rest.subarray(at, at + sizeBytes)
    at += sizeBytes
    return { appId, bytes, count }
  })
  return { writerId: head.writerId, number: head.number, segments, events: head.events }
}

/** What a frame takes in memory, about. */
export function measureFrame({ segments, events }: FrameContents): number {
  let sizeBytes = 200
  for (const { bytes } of segments) sizeBytes += 150 + bytes.length
  for (const { event } of events) sizeBytes += 600 + (event.message?.length ?? 0) * 2
  return sizeBytes
}

export function countObservations(segments: SegmentBytes[]): number {
  return segments.reduce((sum, { count }) => sum + count, 0)
}
