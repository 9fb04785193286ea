import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatClientKey, readClientKey } from '../../src/activity/client-key.ts'
import {
  createSegmentBuilder,
  decodeSegment,
  maxContexts,
  type ObservationContext,
} from '../../src/activity/segment.ts'
import { readObservations } from './harness.ts'

const uuid = fc.uuid()
const platform = fc.constantFrom('android', 'ios', 'linux', 'macos', 'windows')
const number = fc.nat({ max: Number.MAX_SAFE_INTEGER })

const context = fc.record<ObservationContext>(
  {
    release: fc.option(fc.string({ unit: 'grapheme' })),
    platform: platform as fc.Arbitrary<ObservationContext['platform']>,
    running: number,
    rolledBack: fc.array(number),
    event: fc.record({ type: fc.string(), patch: number, receivedHourMs: number }),
  },
  { requiredKeys: ['release', 'platform', 'rolledBack'] },
)

describe('a segment', () => {
  it('reads as it was written', () => {
    const records = fc.array(
      fc.record({ context: fc.nat(), timeMs: fc.nat({ max: 253_402_300_799_999 }), client: uuid }),
    )
    fc.assert(
      fc.property(fc.array(context, { minLength: 1 }), records, (contexts, added) => {
        const builder = createSegmentBuilder()
        const indexes = contexts.map(builder.addContext)
        const expected = added.map(({ context, timeMs, client }) => {
          const index = context % contexts.length
          builder.add(indexes[index] ?? 0, timeMs, client)
          return { client, timeMs, context: contexts[index] }
        })
        expect(builder.count()).toBe(added.length)
        expect(readObservations(builder.encode())).toEqual(JSON.parse(JSON.stringify(expected)))
      }),
    )
  })

  it('has 24 bytes a record beside its contexts, at any place in memory', () => {
    const builder = createSegmentBuilder()
    builder.addContext({ release: null, platform: 'android', rolledBack: [] })
    const empty = builder.encode().length
    for (let count = 0; count < 1000; count += 1) builder.add(0, count, randomUUID())
    const bytes = builder.encode()
    expect(bytes.length - empty).toBe(24_000)
    const shifted = Buffer.concat([Buffer.alloc(3), bytes]).subarray(3)
    expect(readObservations(shifted)).toEqual(readObservations(bytes))
  })

  it('names its last context', () => {
    const builder = createSegmentBuilder()
    for (let patch = 0; patch < maxContexts; patch += 1) {
      builder.addContext({ release: null, platform: 'android', running: patch, rolledBack: [] })
    }
    builder.add(maxContexts - 1, 0, randomUUID())
    expect(readObservations(builder.encode())).toMatchObject([{ context: { running: maxContexts - 1 } }])
  })

  it('that is cut off, or of another format, is refused', () => {
    const builder = createSegmentBuilder()
    builder.addContext({ release: null, platform: 'android', rolledBack: [] })
    builder.add(0, 1, randomUUID())
    const bytes = builder.encode()
    expect(() => decodeSegment(bytes.subarray(0, -1))).toThrow(RangeError)
    expect(() => decodeSegment(bytes.subarray(0, 3))).toThrow(RangeError)
    expect(() => decodeSegment(Buffer.concat([Buffer.from([2]), bytes.subarray(1)]))).toThrow(RangeError)
  })
})

describe('the key of a client_id', () => {
  it('is a UUID in its usual form itself', () => {
    fc.assert(fc.property(uuid, (id) => formatClientKey(readClientKey(id), 0) === id))
  })

  it('is for every other text a UUID of version 8, always the same, and never that of another text', () => {
    const text = fc.oneof(
      fc.string({ minLength: 1, unit: 'binary' }),
      uuid.map((id) => id.toUpperCase()).filter((id) => /[A-F]/.test(id)),
      uuid.map((id) => id.replaceAll('-', '')),
      uuid.map((id) => `${id.slice(0, -1)}ā`),
      uuid.map((id) => `${id.slice(0, 8)}0${id.slice(9)}`),
    )
    fc.assert(
      fc.property(text, text, (one, other) => {
        const key = formatClientKey(readClientKey(one), 0)
        expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        expect(formatClientKey(readClientKey(other), 0) === key).toBe(one === other)
      }),
    )
  })
})
