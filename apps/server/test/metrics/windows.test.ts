import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  choosePreviousWindow,
  chooseWindow,
  findWindowProblem,
  listBuckets,
  type WindowLimits,
  type WindowRequest,
} from '../../src/metrics/windows.ts'
import { dayMs, hourMs } from '../../src/time.ts'

const now = '2026-03-18T12:34:56.789Z'
const limits: WindowLimits = { nowMs: Date.parse(now), hourlyRetentionDays: 90, dailyRetentionDays: 400 }

function request(start?: string, end?: string, granularity?: WindowRequest['granularity']): WindowRequest {
  return {
    startMs: start === undefined ? undefined : Date.parse(start),
    endMs: end === undefined ? undefined : Date.parse(end),
    granularity,
  }
}

function format(timeMs: number): string {
  return new Date(timeMs).toISOString()
}

function rangeOf(start?: string, end?: string): string[] {
  const { startMs, endMs } = chooseWindow(request(start, end), limits)
  return [format(startMs), format(endMs)]
}

describe('the window of a request', () => {
  it('is the last 28 days in whole hours when nothing is asked for', () => {
    expect(rangeOf()).toEqual(['2026-02-18T13:00:00.000Z', now])
    expect(chooseWindow({}, limits).span).toEqual({
      fromMs: Date.parse('2026-02-18T13:00:00Z'),
      toMs: Date.parse('2026-03-18T13:00:00Z'),
    })
  })

  it.each([
    ['keeps whole hours as they are', '2026-03-01T05:00:00Z', '2026-03-02T07:00:00Z', '2026-03-01T05', '2026-03-02T07'],
    ['rounds the start up', '2026-03-01T05:00:00.001Z', '2026-03-02T07:00:00Z', '2026-03-01T06', '2026-03-02T07'],
    ['rounds the end down', '2026-03-01T05:00:00Z', '2026-03-02T07:59:59.999Z', '2026-03-01T05', '2026-03-02T07'],
    ['begins 28 days before an end', undefined, '2026-03-10T07:00:00Z', '2026-02-10T07', '2026-03-10T07'],
    [
      'takes at most 32 days before the end',
      '2026-01-01T00:00:00Z',
      '2026-03-10T07:00:00Z',
      '2026-02-06T07',
      '2026-03-10T07',
    ],
    [
      'takes the zone into account',
      '2026-03-01T01:00:00+05:00',
      '2026-03-02T07:00:00Z',
      '2026-02-28T20',
      '2026-03-02T07',
    ],
    [
      'ends where the current hour begins',
      '2026-03-18T05:00:00Z',
      '2026-03-18T12:00:00Z',
      '2026-03-18T05',
      '2026-03-18T12',
    ],
    ['ends after the current hour', '2026-03-18T05:00:00Z', '2026-03-18T13:00:00Z', '2026-03-18T05', '2026-03-18T13'],
    ['ends in a later hour', '2026-03-18T05:00:00Z', '2026-03-19T20:30:00Z', '2026-03-18T05', '2026-03-19T20'],
    ['begins in the current hour', '2026-03-18T12:20:00Z', '2026-03-19T20:30:00Z', '2026-03-18T12', '2026-03-19T20'],
  ])('%s', (_name, start, end, expectedStart, expectedEnd) => {
    expect(rangeOf(start, end)).toEqual([`${expectedStart}:00:00.000Z`, `${expectedEnd}:00:00.000Z`])
  })

  it.each([
    ['before now', '2026-03-18T12:10:00Z'],
    ['after now', '2026-03-18T12:59:00Z'],
    ['now', now],
  ])('goes up to now when it ends in the current hour, %s', (_name, end) => {
    const window = chooseWindow(request('2026-03-18T12:05:00Z', end), limits)
    expect([format(window.startMs), format(window.endMs)]).toEqual(['2026-03-18T12:00:00.000Z', now])
    expect(window.span?.toMs).toBe(Date.parse('2026-03-18T13:00:00Z'))
  })

  it('has the current hour also when it begins this very moment', () => {
    const nowMs = Date.parse('2026-03-18T12:00:00Z')
    const window = chooseWindow({}, { ...limits, nowMs })
    expect(window.endMs).toBe(nowMs)
    expect(window.span?.toMs).toBe(nowMs + hourMs)
  })

  it('is empty when no whole hour lies in it, and says so', () => {
    const window = chooseWindow(request('2026-03-01T05:10:00Z', '2026-03-01T05:50:00Z'), limits)
    expect(window).toEqual({
      startMs: Date.parse('2026-03-01T05:00:00Z'),
      endMs: Date.parse('2026-03-01T05:00:00Z'),
      span: undefined,
    })
    expect(listBuckets(window, 'hour')).toEqual([])
  })

  it('has whole days where hours are no longer kept', () => {
    expect(rangeOf('2025-12-01T05:00:00Z', '2025-12-10T07:00:00Z')).toEqual([
      '2025-12-02T00:00:00.000Z',
      '2025-12-10T00:00:00.000Z',
    ])
    expect(rangeOf('2025-12-10T05:00:00Z', '2026-01-02T07:30:00Z')).toEqual([
      '2025-12-11T00:00:00.000Z',
      '2026-01-02T07:00:00.000Z',
    ])
    // 90 days before now is in the middle of the 18th.
    expect(rangeOf('2025-12-18T01:30:00Z', '2026-01-02T07:30:00Z')[0]).toBe('2025-12-18T02:00:00.000Z')
    expect(rangeOf('2025-12-17T23:30:00Z', '2026-01-02T07:30:00Z')[0]).toBe('2025-12-18T00:00:00.000Z')
  })

  it('is cut off where days are no longer kept', () => {
    expect(rangeOf('2025-02-01T05:00:00Z', '2025-02-20T07:00:00Z')).toEqual([
      '2025-02-11T00:00:00.000Z',
      '2025-02-20T00:00:00.000Z',
    ])
    expect(rangeOf('2024-02-01T05:00:00Z', '2024-02-20T07:00:00Z')).toEqual([
      '2024-02-20T00:00:00.000Z',
      '2024-02-20T00:00:00.000Z',
    ])
  })
})

describe('a window that cannot be counted', () => {
  it.each([
    ['a start after the end', request('2026-03-02T00:00:00Z', '2026-03-01T00:00:00Z'), /^start: /],
    ['a start at the end', request('2026-03-02T00:00:00Z', '2026-03-02T00:00:00Z'), /^start: /],
    ['a start in the future without an end', request('2026-03-19T00:00:00Z'), /^start: /],
    ['hours that are not kept', request('2025-12-17T23:00:00Z', '2025-12-20T00:00:00Z', 'hour'), /^granularity: /],
  ])('is named: %s', (_name, asked, expected) => {
    expect(findWindowProblem(asked, limits)).toMatch(expected)
  })

  it.each([
    ['nothing', request()],
    ['hours since they are kept', request('2025-12-18T00:00:00Z', '2025-12-20T00:00:00Z', 'hour')],
    ['hours of a window that is moved up to where they are kept', request('2020-01-01T00:00:00Z', now, 'hour')],
    ['days before', request('2025-12-17T23:00:00Z', '2025-12-20T00:00:00Z', 'day')],
  ])('is not: %s', (_name, asked) => {
    expect(findWindowProblem(asked, limits)).toBeUndefined()
  })
})

describe('the window before', () => {
  it('is as long and ends where the window begins', () => {
    const window = chooseWindow(request('2026-03-10T05:00:00Z', '2026-03-12T07:00:00Z'), limits)
    const previous = choosePreviousWindow(window, limits)
    expect([format(previous.startMs), format(previous.endMs)]).toEqual([
      '2026-03-08T03:00:00.000Z',
      '2026-03-10T05:00:00.000Z',
    ])
  })

  it('is cut to whole hours when the window goes up to now', () => {
    const previous = choosePreviousWindow(chooseWindow(request('2026-03-18T10:00:00Z'), limits), limits)
    expect([format(previous.startMs), format(previous.endMs)]).toEqual([
      '2026-03-18T08:00:00.000Z',
      '2026-03-18T10:00:00.000Z',
    ])
  })

  it('is cut off where days are no longer kept', () => {
    const previous = choosePreviousWindow(
      chooseWindow(request('2025-02-15T00:00:00Z', '2025-02-25T00:00:00Z'), limits),
      limits,
    )
    expect([format(previous.startMs), format(previous.endMs)]).toEqual([
      '2025-02-11T00:00:00.000Z',
      '2025-02-15T00:00:00.000Z',
    ])
  })
})

describe('the buckets of a window', () => {
  const window = chooseWindow(request('2026-02-24T05:00:00Z', '2026-03-10T07:00:00Z'), limits)

  it.each([
    ['week', ['2026-02-23', '2026-03-02', '2026-03-09']],
    ['month', ['2026-02-01', '2026-03-01']],
  ] as const)('begin by the calendar: %s', (granularity, expected) => {
    expect(listBuckets(window, granularity).map(({ periodMs }) => format(periodMs).slice(0, 10))).toEqual(expected)
  })

  it('are cut to the window', () => {
    const spans = listBuckets(window, 'month').map(({ span }) => [format(span.fromMs), format(span.toMs)])
    expect(spans).toEqual([
      ['2026-02-24T05:00:00.000Z', '2026-03-01T00:00:00.000Z'],
      ['2026-03-01T00:00:00.000Z', '2026-03-10T07:00:00.000Z'],
    ])
  })

  it('are none without a granularity', () => {
    expect(listBuckets(window, undefined)).toEqual([])
  })
})

const arbitraryTime = fc.oneof(
  fc.integer({ min: 0, max: Date.UTC(9998, 11, 31) }),
  fc.integer({ min: limits.nowMs - 500 * dayMs, max: limits.nowMs + 50 * dayMs }),
  fc.integer({ min: limits.nowMs - 2 * hourMs, max: limits.nowMs + 2 * hourMs }),
  fc.integer({ min: -450 * 24, max: 24 }).map((hours) => Math.floor(limits.nowMs / hourMs) * hourMs + hours * hourMs),
  fc.integer({ min: -450, max: 2 }).map((days) => Math.floor(limits.nowMs / dayMs) * dayMs + days * dayMs),
)
const arbitraryLimits = fc.record({
  nowMs: fc.constantFrom(
    limits.nowMs,
    Math.floor(limits.nowMs / hourMs) * hourMs,
    Math.floor(limits.nowMs / dayMs) * dayMs,
  ),
  hourlyRetentionDays: fc.constantFrom(33, 90),
  dailyRetentionDays: fc.constantFrom(33, 400),
})
const arbitraryRequest = fc.record({
  startMs: fc.option(arbitraryTime, { nil: undefined }),
  endMs: fc.option(arbitraryTime, { nil: undefined }),
  granularity: fc.constantFrom('hour' as const, 'day' as const, 'week' as const, 'month' as const),
})

function forEveryWindow(check: (asked: WindowRequest, bounds: WindowLimits) => void, numRuns = 2000): void {
  fc.assert(
    fc.property(arbitraryRequest, arbitraryLimits, (asked, bounds) => {
      fc.pre(findWindowProblem(asked, bounds) === undefined)
      check(asked, bounds)
    }),
    { numRuns },
  )
}

describe('every window', () => {
  it('is in order, at most 32 days long, and can be written as a date, as can the one before', () => {
    forEveryWindow((asked, bounds) => {
      const window = chooseWindow(asked, bounds)
      for (const { startMs, endMs } of [window, choosePreviousWindow(window, bounds)]) {
        expect(startMs).toBeLessThanOrEqual(endMs)
        expect(endMs - startMs).toBeLessThanOrEqual(32 * dayMs)
        expect([format(startMs), format(endMs)].join()).toMatch(/^\d{4}-.{19},\d{4}-.{19}$/)
      }
    })
  })

  it('counts whole hours, whole days where hours are not kept, and nothing before days are', () => {
    forEveryWindow((asked, bounds) => {
      const window = chooseWindow(asked, bounds)
      for (const { span } of [window, choosePreviousWindow(window, bounds)]) {
        if (span === undefined) continue
        expect(span.fromMs).toBeLessThan(span.toMs)
        for (const edgeMs of [span.fromMs, span.toMs]) {
          const isOld = edgeMs < bounds.nowMs - (bounds.hourlyRetentionDays + 1) * dayMs
          expect(edgeMs % (isOld ? dayMs : hourMs)).toBe(0)
          expect(edgeMs).toBeGreaterThan(bounds.nowMs - (bounds.dailyRetentionDays + 1) * dayMs)
        }
      }
    })
  })

  it('says what is counted: its range is its span, up to now in the current hour', () => {
    forEveryWindow((asked, bounds) => {
      const { startMs, endMs, span } = chooseWindow(asked, bounds)
      if (span === undefined) expect(startMs).toBe(endMs)
      else {
        expect(startMs).toBe(span.fromMs)
        if (endMs === bounds.nowMs) expect(span.toMs - Math.floor(endMs / hourMs) * hourMs).toBe(hourMs)
        else expect(endMs).toBe(span.toMs)
      }
    })
  })

  it('lies within what was asked for, but for the current hour', () => {
    forEveryWindow((asked, bounds) => {
      const { startMs, endMs, span } = chooseWindow(asked, bounds)
      if (span === undefined) return
      const currentHourMs = Math.floor(bounds.nowMs / hourMs) * hourMs
      if (startMs !== currentHourMs) expect(startMs).toBeGreaterThanOrEqual(asked.startMs ?? 0)
      if (endMs !== bounds.nowMs) expect(endMs).toBeLessThanOrEqual(asked.endMs ?? bounds.nowMs)
    })
  })

  it('asked for again by its range is the same', () => {
    forEveryWindow((asked, bounds) => {
      const window = chooseWindow(asked, bounds)
      if (window.span === undefined) return
      const { startMs, endMs } = window
      expect(chooseWindow({ startMs, endMs }, bounds)).toEqual(window)
    })
  })

  it('does not overlap with the one before', () => {
    forEveryWindow((asked, bounds) => {
      const window = chooseWindow(asked, bounds)
      const previous = choosePreviousWindow(window, bounds)
      expect(previous.endMs).toBeLessThanOrEqual(window.startMs)
      if (window.span !== undefined && previous.span !== undefined) {
        expect(previous.span.toMs).toBe(window.span.fromMs)
      }
    })
  })

  it('is followed by its buckets without gap or overlap, each within its period', () => {
    forEveryWindow((asked, bounds) => {
      const window = chooseWindow(asked, bounds)
      const buckets = listBuckets(window, asked.granularity)
      expect(buckets[0]?.span.fromMs).toBe(window.span?.fromMs)
      expect(buckets.at(-1)?.span.toMs).toBe(window.span?.toMs)
      for (const [index, { periodMs, span }] of buckets.entries()) {
        const next = buckets[index + 1]
        expect(span.fromMs).toBeLessThan(span.toMs)
        expect(periodMs).toBeLessThanOrEqual(span.fromMs)
        if (next !== undefined) {
          expect(next.periodMs).toBe(span.toMs)
          expect(next.span.fromMs).toBe(span.toMs)
        }
        const period = new Date(periodMs)
        if (asked.granularity !== 'hour') expect(periodMs % dayMs).toBe(0)
        if (asked.granularity === 'week') expect(period.getUTCDay()).toBe(1)
        if (asked.granularity === 'month') expect(period.getUTCDate()).toBe(1)
      }
    }, 200)
  })
})
