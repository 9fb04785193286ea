import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  dayAndHourOf,
  shareOf,
  sortGroups,
  sortVersions,
  summarizeDevices,
  summarizeEvents,
  summarizeHours,
  summarizeWeek,
} from '../../src/metrics/rules.ts'

const days = 28
const arbitraryHours = fc.array(fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.nat(50)), {
  minLength: days * 24,
  maxLength: days * 24,
})
/** Hours of 28 days, of which the first few have data at the given hours. */
function hoursOf(daysWithData: number, devices: Record<number, number>): number[] {
  return Array.from({ length: days * 24 }, (_, hour) => (hour < daysWithData * 24 ? (devices[hour % 24] ?? 0) : 0))
}

describe('versions', () => {
  it('are sorted by devices, then by code point, those without a version last', () => {
    const rows = [
      { releaseVersion: null, devices: 5 },
      { releaseVersion: '2', devices: 5 },
      { releaseVersion: '\u{1f600}', devices: 5 },
      { releaseVersion: '\uffee', devices: 5 },
      { releaseVersion: '10', devices: 5 },
      { releaseVersion: '1', devices: 9 },
    ]
    expect(sortVersions(rows).map(({ releaseVersion }) => releaseVersion)).toEqual([
      '1',
      '10',
      '2',
      '\uffee',
      '\u{1f600}',
      null,
    ])
  })
})

describe('a share', () => {
  it('lies between 0 and 1, and is 0 of nothing', () => {
    expect([shareOf(0, 0), shareOf(3, 0), shareOf(1, 4), shareOf(5, 4)]).toEqual([0, 0, 0.25, 1])
  })
})

describe('groups', () => {
  const groups = ['2', '10', '1'].map((value) => ({ value, count: 1 }))

  it('are sorted by count, then as text or as numbers', () => {
    expect(sortGroups([...groups, { value: '3', count: 2 }], 'text').map(({ value }) => value)).toEqual([
      '3',
      '1',
      '10',
      '2',
    ])
    expect(sortGroups(groups, 'numbers').map(({ value }) => value)).toEqual(['1', '2', '10'])
  })
})

describe('device counts', () => {
  it('become a series without empty buckets, for the whole and for each group', () => {
    const counts = [
      {
        devices: 3,
        groups: [
          { value: null, devices: 1 },
          { value: '1.0', devices: 2 },
        ],
      },
      { devices: 2, groups: [{ value: '1.0', devices: 2 }] },
      { devices: 0, groups: [] },
      {
        devices: 2,
        groups: [
          { value: '1.0', devices: 1 },
          { value: null, devices: 1 },
        ],
      },
    ]
    expect(summarizeDevices(counts, [100, 200, 300])).toEqual({
      count: 3,
      series: [
        { periodMs: 100, count: 2 },
        { periodMs: 300, count: 2 },
      ],
      groups: [
        {
          value: '1.0',
          count: 2,
          series: [
            { periodMs: 100, count: 2 },
            { periodMs: 300, count: 1 },
          ],
        },
        { value: '', count: 1, series: [{ periodMs: 300, count: 1 }] },
      ],
    })
  })
})

describe('event counts', () => {
  const arbitraryRows = fc.array(
    fc.record({ bucket: fc.nat(3), value: fc.constantFrom('1', '2', '10'), count: fc.integer({ min: 1, max: 9 }) }),
  )

  it('sum up to the same over the series and over the groups', () => {
    fc.assert(
      fc.property(arbitraryRows, (rows) => {
        const { count, series, groups } = summarizeEvents(rows, [0, 10, 20, 30], 'numbers')
        const sum = (items: { count: number }[]) => items.reduce((total, item) => total + item.count, 0)
        expect(sum(rows)).toBe(count)
        expect(sum(series)).toBe(count)
        expect(sum(groups)).toBe(count)
        for (const group of groups) expect(sum(group.series)).toBe(group.count)
      }),
    )
  })

  it('have neither series nor groups that nobody asked for', () => {
    expect(summarizeEvents([{ bucket: 0, value: null, count: 4 }], [], 'text')).toEqual({
      count: 4,
      series: [],
      groups: [],
    })
  })
})

describe('the hours of the day', () => {
  it('are averaged over all days, those without anything included', () => {
    const { averages } = summarizeHours(hoursOf(7, { 3: 8 }))
    expect(averages).toHaveLength(24)
    expect(averages[3]).toBe(2)
    expect(averages[4]).toBe(0)
  })

  it('have the quietest two in a row also around midnight', () => {
    const busy = Object.fromEntries(Array.from({ length: 24 }, (_, hour) => [hour, 10]))
    expect(summarizeHours(hoursOf(28, { ...busy, 23: 1, 0: 2 })).quietestStart).toBe(23)
    expect(summarizeHours(hoursOf(28, { ...busy, 5: 1, 6: 2 })).quietestStart).toBe(5)
  })

  it('have the earliest of equals', () => {
    expect(summarizeHours(hoursOf(28, { 4: 5, 9: 5 }))).toMatchObject({ busiestHour: 4, quietestStart: 0 })
  })

  it('have no busiest and no quietest below 7 days with data', () => {
    expect(summarizeHours(hoursOf(6, { 4: 5 }))).toMatchObject({ busiestHour: null, quietestStart: null })
    expect(summarizeHours(hoursOf(7, { 4: 5 }))).toMatchObject({ busiestHour: 4, quietestStart: 0 })
    expect(summarizeHours(hoursOf(0, {}))).toEqual({
      averages: Array.from({ length: 24 }, () => 0),
      busiestHour: null,
      quietestStart: null,
    })
  })

  it('are what brute force finds', () => {
    fc.assert(
      fc.property(arbitraryHours, (hours) => {
        const { averages, busiestHour, quietestStart } = summarizeHours(hours)
        const mean = (hour: number) => hours.filter((_, index) => index % 24 === hour % 24).reduce((a, b) => a + b) / 28
        for (const [hour, average] of averages.entries()) expect(average).toBeCloseTo(mean(hour), 9)
        if (busiestHour === null || quietestStart === null) return
        for (let hour = 0; hour < 24; hour += 1) {
          expect(mean(busiestHour)).toBeGreaterThanOrEqual(mean(hour))
          expect(mean(quietestStart) + mean(quietestStart + 1)).toBeLessThanOrEqual(
            mean(hour) + mean(hour + 1) + Number.EPSILON * 100,
          )
        }
      }),
      { numRuns: 50 },
    )
  })
})

describe('the week', () => {
  it.each([0, 3, 6])('is ordered from Sunday, whatever day the hours begin on (%i)', (firstDay) => {
    fc.assert(
      fc.property(arbitraryHours, (hours) => {
        const { averages } = summarizeWeek(hours, firstDay)
        expect(averages).toHaveLength(168)
        for (const [cell, average] of averages.entries()) {
          const { dayOfWeek, hour } = dayAndHourOf(cell)
          const some = hours.filter(
            (_, index) => (firstDay + Math.floor(index / 24)) % 7 === dayOfWeek && index % 24 === hour,
          )
          expect(some).toHaveLength(4)
          expect(average).toBe(some.reduce((a, b) => a + b) / 4)
        }
      }),
      { numRuns: 10 },
    )
  })

  it('has its busiest cell, the earliest of equals, from 7 days with data on', () => {
    expect(summarizeWeek(hoursOf(7, { 4: 5, 9: 5 }), 3).busiestCell).toBe(4)
    expect(summarizeWeek(hoursOf(6, { 4: 5, 9: 5 }), 3).busiestCell).toBeNull()
  })
})
