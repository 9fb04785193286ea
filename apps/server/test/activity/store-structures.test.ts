import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createDeviceDirectory } from '../../src/activity/store/device-directory.ts'
import { createInstallStates } from '../../src/activity/store/install-states.ts'
import { createMarkSet } from '../../src/activity/store/mark-set.ts'
import { splitSpan } from '../../src/activity/store/read-app.ts'
import { appendNumber, createNumberList, sortNumbers } from '../../src/activity/store/sort-numbers.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

describe('the directory of devices', () => {
  it('finds what a Map finds, after any sets and removals', () => {
    const word = fc.constantFrom(0, 1, 2, 0x80000000, 0xffffffff)
    const step = fc.record({ key: fc.tuple(word, word, word, word), isRemoval: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 600 }), (steps) => {
        const directory = createDeviceDirectory()
        const known = new Map<string, number>()
        for (const [number, { key, isRemoval }] of steps.entries()) {
          const words = Uint32Array.from([9, ...key])
          const name = key.join()
          expect(directory.find(words, 1)).toBe(known.get(name))
          if (isRemoval) {
            directory.remove(words, 1)
            known.delete(name)
          } else {
            directory.set(words, 1, number)
            known.set(name, number)
          }
          expect(directory.count()).toBe(known.size)
        }
      }),
    )
  })
})

describe('sorted numbers', () => {
  it.each([10, 5000])('are distinct and ascending, of %i at most', (maxLength) => {
    const list = fc.array(fc.nat({ max: 100_000 }), { maxLength })
    fc.assert(
      fc.property(fc.array(list, { maxLength: 3 }), (lists) => {
        const given = lists.map((numbers) => {
          const grown = createNumberList()
          for (const number of numbers) appendNumber(grown, number)
          return grown
        })
        expect([...sortNumbers(given)]).toEqual([...new Set(lists.flat())].sort((a, b) => a - b))
      }),
      { numRuns: 50 },
    )
  })
})

describe('what a device has installed', () => {
  it('is what it installed last on the release, without what is rolled back', () => {
    const install = fc.record({ release: fc.constantFrom(null, '1.0', '2.0'), patch: fc.integer({ min: 1, max: 5 }) })
    fc.assert(
      fc.property(fc.array(install, { maxLength: 30 }), fc.subarray([1, 2, 3, 4, 5]), (installs, rolledBack) => {
        const states = createInstallStates()
        const state = installs.reduce((before, { release, patch }) => states.install(before, release, patch), 0)
        for (const release of [null, '1.0', '2.0', '3.0']) {
          const last = installs.findLast((one) => one.release === release && !rolledBack.includes(one.patch))
          expect(states.findRunning(state, release, rolledBack)).toBe(last?.patch ?? 0)
        }
      }),
    )
  })

  it('is one state for all devices with the same history, and the same after it was stored', () => {
    const states = createInstallStates()
    const [one, other] = [states.install(0, '1.0', 1), states.install(0, '1.0', 1)]
    expect(other).toBe(one)
    const again = createInstallStates()
    for (let state = 1; state < states.count(); state += 1) again.load(states.get(state))
    expect(again.install(0, '1.0', 1)).toBe(one)
  })
})

describe('the marks of lines', () => {
  it('are known once, also after they were stored', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 2 ** 52 }), { maxLength: 300 }), (marks) => {
        const set = createMarkSet()
        const isNew = marks.filter((mark) => set.add(mark))
        expect(isNew).toEqual([...new Set(marks)])
        const stored = createMarkSet(set.encode())
        expect(marks.some((mark) => stored.add(mark))).toBe(false)
        expect(stored.count()).toBe(set.count())
      }),
    )
  })
})

describe('the units of a span', () => {
  it('cover it without a gap: whole days as one, hours around them', () => {
    fc.assert(
      fc.property(fc.nat({ max: 5000 }), fc.integer({ min: 1, max: 1000 }), (fromHour, hours) => {
        const [fromMs, toMs] = [fromHour * hourMs, (fromHour + hours) * hourMs]
        const units = splitSpan(1, fromMs, toMs)
        expect(units[0]?.fromMs).toBe(fromMs)
        expect(units.at(-1)?.toMs).toBe(toMs)
        for (const [index, unit] of units.entries()) {
          if (index > 0) expect(unit.fromMs).toBe(units[index - 1]?.toMs)
          const isDays = unit.fromMs % dayMs === 0 && unit.toMs % dayMs === 0
          expect(isDays || unit.toMs - unit.fromMs === hourMs).toBe(true)
        }
        expect(units.length).toBeLessThanOrEqual(47)
      }),
    )
  })
})
