import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { decodeFrame, encodeFrame, type Frame, readFrameSize } from '../../src/activity/frames.ts'
import { eventOf } from './harness.ts'

const frame: Frame = {
  writerId: randomUUID(),
  number: 7,
  segments: [
    { appId: 'a', bytes: randomBytes(100), count: 4 },
    { appId: 'ä'.repeat(20), bytes: Buffer.alloc(0), count: 0 },
    { appId: 'b', bytes: randomBytes(1), count: 1 },
  ],
  events: [{ event: eventOf('a', 1, { message: '\u2028 "x"' }), receivedMs: 1_790_000_000_123 }],
}

describe('a frame', () => {
  const bytes = encodeFrame(frame)

  it('reads as it was written, and tells where the next one begins', () => {
    const two = Buffer.concat([bytes, encodeFrame({ ...frame, number: 8 })])
    expect(decodeFrame(two)).toEqual(frame)
    expect(decodeFrame(two.subarray(readFrameSize(two)))).toMatchObject({ number: 8 })
  })

  it('is none when it is cut off anywhere', () => {
    for (let length = 0; length < bytes.length; length += 1) {
      expect(decodeFrame(bytes.subarray(0, length))).toBeUndefined()
    }
  })

  it('is none when any of its bits is another', () => {
    for (let at = 0; at < bytes.length; at += 1) {
      const wrong = Buffer.from(bytes)
      wrong[at] = (wrong[at] ?? 0) ^ (1 << (at % 8))
      expect(decodeFrame(wrong)).toBeUndefined()
    }
  })

  it('is none where the disk has zeros', () => {
    expect(decodeFrame(Buffer.alloc(4096))).toBeUndefined()
  })
})
