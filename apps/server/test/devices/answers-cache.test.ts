import pino from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createAnswersCache } from '../../src/devices/answers-cache.ts'
import { type AppAnswers, buildAppAnswers } from '../../src/devices/app-answers.ts'

type Outcome = PromiseWithResolvers<AppAnswers | undefined>

let loads: Outcome[]
let cache: ReturnType<typeof createAnswersCache>

const answersAt = (version: number) => buildAppAnswers({ device_version: version, releases: [] }, String)

/** Loads end when, and how, a test says so. */
beforeEach(() => {
  vi.useFakeTimers()
  loads = []
  const load = () => {
    const outcome: Outcome = Promise.withResolvers()
    loads.push(outcome)
    return outcome.promise
  }
  cache = createAnswersCache({ load, log: pino({ level: 'silent' }) })
})
afterEach(() => {
  vi.useRealTimers()
})

async function loadVersion(version: number) {
  const found = cache.find('a', version)
  loads.at(-1)?.resolve(answersAt(version))
  await found
}

describe('a check', () => {
  it('that comes after a change is not answered by a load that began before it', async () => {
    const early = cache.find('a', 1)
    const late = cache.find('a', 2)
    expect(loads).toHaveLength(1)
    loads[0]?.resolve(answersAt(1))
    expect(await early).toMatchObject({ version: 1 })
    await vi.waitFor(() => expect(loads).toHaveLength(2))
    loads[1]?.resolve(answersAt(2))
    expect(await late).toMatchObject({ version: 2 })
    expect(cache.find('a', 2)).toMatchObject({ version: 2 })
  })

  it('waits a second for what is newer and is then answered from what is known, as are those after it', async () => {
    await loadVersion(1)
    const waiting = cache.find('a', 2)
    await vi.advanceTimersByTimeAsync(1000)
    expect(await waiting).toMatchObject({ version: 1 })
    expect(await cache.find('a', 2)).toMatchObject({ version: 1 })
    expect(loads).toHaveLength(2)
    loads[1]?.resolve(answersAt(2))
    await vi.advanceTimersByTimeAsync(0)
    expect(cache.find('a', 2)).toMatchObject({ version: 2 })
  })

  it('of an app that was never loaded is refused when the load fails, and loads again a second later', async () => {
    const refused = cache.find('a', 1)
    loads[0]?.reject(new Error('no database'))
    await expect(refused).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 5 })
    await expect(cache.find('a', 1)).rejects.toMatchObject({ code: 'unavailable' })
    expect(loads).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1000)
    await loadVersion(1)
    expect(cache.find('a', 1)).toMatchObject({ version: 1 })
  })

  it('that comes after a change does not wait out the pause after a failure', async () => {
    await loadVersion(1)
    const stale = cache.find('a', 2)
    loads[1]?.reject(new Error('no database'))
    expect(await stale).toMatchObject({ version: 1 })
    cache.markChanged('a', false)
    await loadVersion(3)
    expect(cache.find('a', 3)).toMatchObject({ version: 3 })
  })

  it('ends although the database is behind what was told', async () => {
    const found = cache.find('a', 9)
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await vi.waitFor(() => expect(loads).toHaveLength(attempt + 1))
      loads[attempt]?.resolve(answersAt(1))
    }
    expect(await found).toMatchObject({ version: 1 })
    expect(cache.measure().loads).toBe(3)
  })
})
