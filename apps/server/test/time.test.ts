import { describe, expect, it } from 'vitest'
import { monthOf } from '../src/time.ts'

describe('monthOf', () => {
  it.each([
    ['2026-11-21T12:00:00Z', '2026-11-01T00:00:00Z', '2026-12-01T00:00:00Z'],
    ['2026-12-31T23:59:59.999Z', '2026-12-01T00:00:00Z', '2027-01-01T00:00:00Z'],
    ['2028-02-01T00:00:00Z', '2028-02-01T00:00:00Z', '2028-03-01T00:00:00Z'],
  ])('puts %s between %s and %s', (now, start, end) => {
    expect(monthOf(new Date(now))).toEqual({ start: new Date(start), end: new Date(end) })
  })
})
