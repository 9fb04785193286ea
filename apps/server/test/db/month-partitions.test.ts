import { describe, expect, it } from 'vitest'
import { isPartitionOver, partitionOf } from '../../src/db/month-partitions.ts'

describe('a partition', () => {
  it('begins and ends with its month, in UTC', () => {
    const ends = { start: new Date('2026-12-01'), end: new Date('2027-01-01') }
    const december = { table: 'audit_events', name: 'audit_events_2026_12', ...ends }
    for (const time of ['2026-12-01T00:00:00.000Z', '2026-12-31T23:59:59.999Z']) {
      expect(partitionOf('audit_events', new Date(time))).toEqual(december)
    }
  })

  it('is over when all of it is older', () => {
    expect(isPartitionOver('audit_events_2026_12', new Date('2026-12-31T23:59:59.999Z'))).toBe(false)
    expect(isPartitionOver('audit_events_2026_12', new Date('2027-01-01T00:00:00.000Z'))).toBe(true)
    expect(isPartitionOver('audit_events_2026_12_copy', new Date('2030-01-01'))).toBe(false)
  })
})
