import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readOptions } from '../../../../bench/simulate/options.ts'
import { createSchedule } from '../../../../bench/simulate/schedule.ts'
import { createSimulation } from '../../../../bench/simulate/simulation.ts'
import { writeImport } from '../../../../bench/simulate/write-import.ts'

const startSeconds = Date.UTC(2026, 8, 1) / 1000
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'godwit-simulate-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

type Line = { client_id: string; release_version: string; patch_number: number | null; time: string }

async function simulate(args: string[]) {
  const file = join(folder, 'observations.ndjson')
  const options = readOptions(['--import-file', file, ...args])
  const simulation = createSimulation({ ...options, startSeconds })
  await writeImport(simulation, { file, patches: options.patches })
  const text = await readFile(file, 'utf8')
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line): Line => JSON.parse(line))
  return { text, lines, counts: simulation.counts, population: simulation.population }
}

describe('the import file of the simulator', () => {
  const args = ['--devices', '300', '--days', '14', '--patches', '1@day3,2@day6-day9', '--failure-rate', '0.1']

  it('is the same for the same seed, and another for another', async () => {
    const first = await simulate(args)
    expect((await simulate(args)).text).toBe(first.text)
    expect((await simulate([...args, '--seed', '2'])).text).not.toBe(first.text)
  })

  it('has the observations in the order of time, within the period, at the mean rate', async () => {
    const { lines, counts } = await simulate([...args, '--old-updaters', '0', '--devices', '2000'])
    const times = lines.map(({ time }) => Date.parse(time) / 1000)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect(times[0]).toBeGreaterThanOrEqual(startSeconds)
    expect(times.at(-1)).toBeLessThan(startSeconds + 14 * 86_400)
    expect(counts.observations).toBe(lines.length)
    expect(lines.length / 2000 / 14).toBeGreaterThan(2.7)
    expect(lines.length / 2000 / 14).toBeLessThan(3.3)
  })

  it('shows no patch before its day, and none that was rolled back after a device has checked since', async () => {
    const { lines, counts } = await simulate(args)
    const dayOf = (line: Line) => Math.floor((Date.parse(line.time) / 1000 - startSeconds) / 86_400)
    expect(lines.filter((line) => line.patch_number === 1 && dayOf(line) < 3)).toEqual([])
    expect(lines.filter((line) => line.patch_number === 2 && dayOf(line) < 6)).toEqual([])
    const late = lines.filter((line) => dayOf(line) >= 9)
    const seen = new Set<string>()
    for (const line of late) {
      if (seen.has(line.client_id)) expect(line.patch_number).not.toBe(2)
      seen.add(line.client_id)
    }
    expect(late.some((line) => line.patch_number === 2)).toBe(true)
    expect(counts.uninstalls).toBeGreaterThan(0)
    expect(counts.events.__patch_install_failure__).toBeGreaterThan(0)
  })

  it('gives every device a random UUID of its own', async () => {
    const { population } = await simulate(['--devices', '5000', '--days', '1'])
    const ids = new Set(Array.from({ length: 5000 }, (_, device) => population.clientId(device)))
    expect(ids.size).toBe(5000)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  it('has the shares of releases that were asked for', async () => {
    const { population } = await simulate(['--devices', '5000', '--days', '1', '--releases', 'a:80,b:20'])
    const versions = Array.from({ length: 5000 }, (_, device) => population.describe(device).releaseVersion)
    const share = versions.filter((version) => version === 'a').length / 5000
    expect(share).toBeGreaterThan(0.77)
    expect(share).toBeLessThan(0.83)
  })
})

describe('the launches of the simulator', () => {
  it('leave a device a minute between two, and are the same when taken in parts', () => {
    const options = { devices: 50, seed: 3, days: 5, launchesPerDay: 200, startSeconds }
    const takeAll = (ends: number[]) => {
      const schedule = createSchedule(options)
      return ends.flatMap((end) => {
        const launches = []
        for (let due = schedule.next(end); due !== undefined; due = schedule.next(end)) {
          expect(due.atSeconds).toBeLessThan(end)
          launches.push(due)
        }
        return launches
      })
    }
    const whole = takeAll([432_000])
    expect(takeAll([60, 86_400, 90_000, 432_000])).toEqual(whole)
    const last = new Map<number, number>()
    for (const { device, atSeconds } of whole) {
      expect(atSeconds - (last.get(device) ?? -60)).toBeGreaterThanOrEqual(60)
      last.set(device, atSeconds)
    }
  })
})

describe('the options of the simulator', () => {
  it.each([
    [[], '--app'],
    [['--app', 'a', '--devices', '0'], '--devices'],
    [['--app', 'a', '--failure-rate', '2'], '--failure-rate'],
    [['--app', 'a', '--platforms', 'amiga:1'], 'amiga'],
    [['--app', 'a', '--releases', 'a:x'], '--releases'],
    [['--app', 'a', '--url', 'localhost:8080'], '--url'],
    [['--app', 'a', '--patches', '1@day1'], '--patches'],
    [['--import-file', 'a', '--patches', '1@3'], '--patches'],
  ])('refuse %j and name what is wrong', (args, name) => {
    expect(() => readOptions(args)).toThrow(name)
  })
})
