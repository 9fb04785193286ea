import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Installed, identify, install, launch, takeAnswer } from '../../../../bench/simulate/rules.ts'

const fresh: Installed = { running: 0, good: 0, next: 0 }
const offer = (number: number) => ({ number, download_url: 'http://x/', hash: '' })
const never = () => false

describe('the device that the simulator plays', () => {
  it('runs a downloaded patch from the next launch on, and reports the first good boot once', () => {
    const { installed, wanted } = takeAnswer(fresh, { patch_available: true, patch: offer(2) }, never)
    expect(wanted?.number).toBe(2)
    const waiting = install(installed, 2)
    expect(waiting.running).toBe(0)
    const booted = launch(waiting, never)
    expect(booted).toEqual({
      installed: { running: 2, good: 2, next: 2 },
      report: { type: '__patch_install__', patch_number: 2 },
    })
    expect(launch(booted.installed, never).report).toBeUndefined()
  })

  it('goes back to the last good patch when the new one does not boot, and does not want it again', () => {
    const failed = launch({ running: 1, good: 1, next: 2 }, () => true)
    expect(failed).toEqual({
      installed: { running: 1, good: 1, next: 1 },
      report: { type: '__patch_install_failure__', patch_number: 2 },
    })
    const answer = { patch_available: true, patch: offer(2) }
    expect(takeAnswer(failed.installed, answer, (number) => number === 2).wanted).toBeUndefined()
  })

  it('wants a lower number too, but nothing that it has', () => {
    const installed = { running: 3, good: 3, next: 3 }
    expect(takeAnswer(installed, { patch_available: true, patch: offer(1) }, never).wanted?.number).toBe(1)
    expect(takeAnswer(installed, { patch_available: true, patch: offer(3) }, never).wanted).toBeUndefined()
    expect(takeAnswer(installed, { patch_available: false }, never)).toEqual({ installed })
  })

  it('gives up a rolled back patch for the last good one, or for the base when that is gone as well', () => {
    const installed = { running: 1, good: 1, next: 2 }
    const afterAnswer = (numbers: number[]) =>
      takeAnswer(installed, { patch_available: false, rolled_back_patch_numbers: numbers }, never).installed
    expect(afterAnswer([2])).toEqual({ running: 1, good: 1, next: 1 })
    expect(afterAnswer([2, 1])).toEqual({ running: 1, good: 0, next: 0 })
    expect(afterAnswer([1, 2])).toEqual({ running: 1, good: 0, next: 0 })
    expect(launch(afterAnswer([1]), () => true).installed.running).toBe(0)
  })

  it('sends what its updater knows of', () => {
    expect(identify('current', 'c', { ...fresh, running: 2 })).toEqual({ client_id: 'c' })
    expect(identify('without client_id', 'c', fresh)).toEqual({})
    expect(identify('with patch_number', 'c', { ...fresh, running: 2 })).toEqual({ patch_number: 2 })
    expect(identify('with patch_number', 'c', fresh)).toEqual({ patch_number: null })
  })

  const number = fc.integer({ min: 1, max: 5 })
  const step = fc.record({
    launches: fc.boolean(),
    fails: fc.boolean(),
    offered: fc.option(number, { nil: undefined }),
    rolledBack: fc.uniqueArray(number, { maxLength: 4 }),
    downloads: fc.boolean(),
  })

  it('never boots a patch that the last check rolled back, nor one that has failed, whatever happens', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let installed = fresh
        let forbidden: number[] = []
        const failed = new Set<number>()
        for (const { launches, fails, offered, rolledBack, downloads } of steps) {
          if (launches) {
            const booted = launch(installed, (next) => {
              expect(failed).not.toContain(next)
              expect(forbidden).not.toContain(next)
              return fails
            })
            installed = booted.installed
            expect(forbidden).not.toContain(installed.running)
            expect(failed).not.toContain(installed.running)
            if (booted.report?.type === '__patch_install_failure__') failed.add(booted.report.patch_number)
          }
          const isOffered = offered !== undefined && !rolledBack.includes(offered)
          const patch = isOffered ? { patch: offer(offered) } : {}
          const answer = { patch_available: isOffered, ...patch, rolled_back_patch_numbers: rolledBack }
          const taken = takeAnswer(installed, answer, (candidate) => failed.has(candidate))
          installed = taken.installed
          if (downloads && taken.wanted !== undefined) installed = install(installed, taken.wanted.number)
          forbidden = rolledBack
        }
      }),
      { numRuns: 2000 },
    )
  })
})
