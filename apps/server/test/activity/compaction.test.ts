import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compactApp } from '../../src/activity/store/compact-app.ts'
import { finishUnits, purgeRemovedDevices, tidyApp } from '../../src/activity/store/maintain-app.ts'
import { removeApp } from '../../src/activity/store/remove-app.ts'
import { removeDevice } from '../../src/activity/store/remove-device.ts'
import { clientOf } from './harness.ts'
import { ask, createStoreHarness, type Sighting, type StoreHarness, type StoreProcess } from './store-harness.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const today = Math.floor(Date.now() / dayMs) * dayMs
const span = { fromMs: today - 10 * dayMs, toMs: today + dayMs }

let harness: StoreHarness
beforeEach(async () => {
  harness = await createStoreHarness()
})
afterEach(() => harness.close())

const compact = ({ context }: StoreProcess, skipLocked = false) =>
  compactApp(context, { appId: harness.appId, skipLocked })
const counts = (process: StoreProcess) => ask(process, harness.appId, span)

function sightings(devices: number, timeMs: number, context: Sighting['context'] = {}): Sighting[] {
  return Array.from({ length: devices }, (_, device) => ({ device, timeMs: timeMs + device, context }))
}

describe('compaction', () => {
  it('counts everything once, wherever it was cut off', async () => {
    const process = harness.start()
    let failures = 0
    for (let statements = 0; ; statements += 1) {
      // Each time other devices, so that a part that was kept would show.
      const first = statements * 10
      const seen = sightings(7, today - dayMs).map(({ device, ...rest }) => ({ device: first + device, ...rest }))
      await harness.accept(seen)
      await harness.accept(sightings(3, today, { release: `1.0.${statements}`, event: installOf(statements + 1) }))
      process.failAfter(statements)
      const isCut = await compact(process).then(
        () => false,
        () => true,
      )
      process.failAfter(undefined)
      await compact(process)
      const fresh = harness.start()
      expect(await counts(process)).toEqual(await counts(fresh))
      const known = new Set(
        Array.from({ length: (statements + 1) * 10 }, (_, device) => device).filter((d) => d % 10 < 7),
      )
      expect(await counts(process)).toMatchObject({ devices: known.size })
      const installs = await harness.db.selectFrom('activity_event_counts').select('count').execute()
      expect(installs.map(({ count }) => count)).toEqual(Array.from({ length: statements + 1 }, () => 3))
      await fresh.close()
      if (!isCut) break
      failures += 1
    }
    expect(failures).toBeGreaterThan(10)
  })

  it('gives two processes the same counts, whichever of them compacts', async () => {
    const [one, two] = [harness.start({ cacheBytes: 8000 }), harness.start({ cacheBytes: 2000 })]
    for (let round = 0; round < 12; round += 1) {
      await harness.accept(sightings(round * 3 + 1, today - (round % 4) * dayMs, { running: round % 3 }))
      await compact(round % 2 === 0 ? one : two)
      if (round % 5 === 0) await tidyApp(one.context, harness.appId)
      expect(await counts(two)).toEqual(await counts(one))
    }
    expect(await counts(one)).toMatchObject({ devices: 34 })
  })

  it('is done by one process at a time, and loses nothing to the race', async () => {
    const processes = [harness.start(), harness.start(), harness.start()]
    for (let segment = 0; segment < 200; segment += 1) {
      await harness.accept([{ device: segment, timeMs: today, context: { event: installOf(1) } }])
    }
    const work = async (process: StoreProcess) => {
      for (let idle = 0; idle < 3; ) {
        const { busy, observations } = await compact(process, true)
        idle = busy || observations > 0 ? 0 : idle + 1
      }
    }
    await Promise.all(processes.map(work))
    for (const process of processes) expect(await counts(process)).toMatchObject({ devices: 200 })
    const installs = await harness.db.selectFrom('activity_event_counts').select('count').execute()
    expect(installs).toEqual([{ count: 200 }])
  })

  it('keeps one part of each bitmap whose time is over, and the same counts', async () => {
    const process = harness.start()
    for (let round = 0; round < 40; round += 1) {
      await harness.accept(sightings(round + 1, today - 2 * dayMs + (round % 3) * hourMs))
      await compact(process)
    }
    const before = await counts(process)
    await tidyApp(process.context, harness.appId)
    await finishUnits(process.context, harness.appId)
    for (const table of ['activity_hours', 'activity_days'] as const) {
      const parts = await harness.db.selectFrom(table).select('start').execute()
      expect(parts).toHaveLength(table === 'activity_hours' ? 3 : 1)
    }
    expect(await counts(process)).toEqual(before)
    const fresh = harness.start()
    expect(await counts(fresh)).toEqual(before)
    const totals = await harness.db.selectFrom('activity_hour_totals').select('devices').orderBy('start').execute()
    expect(totals).toEqual([{ devices: 40 }, { devices: 38 }, { devices: 39 }])
  })

  it('answers the same from chunks of columns, from changes, and from both', async () => {
    const process = harness.start()
    for (let round = 0; round < 30; round += 1) {
      // Enough that changes outweigh the columns several times.
      await harness.accept(sightings(3000, today - dayMs + round * 1000, { release: `1.${round % 7}.0` }))
      await compact(process)
      await tidyApp(process.context, harness.appId)
    }
    const chunks = await harness.db.selectFrom('activity_device_chunks').select('seq').execute()
    expect(chunks).toHaveLength(1)
    expect(await counts(harness.start())).toEqual(await counts(process))
    expect(await counts(process)).toMatchObject({ versions: [{ releaseVersion: '1.1.0', devices: 3000 }] })
  })

  it('forgets a device at once for every process, and in the bitmaps later', async () => {
    const [one, two] = [harness.start(), harness.start()]
    await harness.accept(sightings(5, today - dayMs))
    expect(await counts(two)).toMatchObject({ devices: 5 })
    expect(await removeDevice(one.context, { appId: harness.appId, clientId: clientOf(2) })).toBe(true)
    for (const process of [one, two, harness.start()]) {
      expect(await counts(process)).toMatchObject({ devices: 4, versions: [{ releaseVersion: '1.0.0+1', devices: 4 }] })
    }
    await purgeRemovedDevices(one.context, harness.appId)
    expect(await harness.db.selectFrom('activity_removed_devices').selectAll().execute()).toEqual([])
    for (const process of [one, two, harness.start()]) expect(await counts(process)).toMatchObject({ devices: 4 })
    await harness.accept(sightings(5, today))
    for (const process of [one, two]) expect(await counts(process)).toMatchObject({ devices: 5 })
  })

  it('forgets a device that was never compacted', async () => {
    await harness.accept(sightings(2, today))
    const process = harness.start()
    expect(await removeDevice(process.context, { appId: harness.appId, clientId: clientOf(1) })).toBe(true)
    expect(await counts(process)).toMatchObject({ devices: 1 })
  })

  it('passes over a segment that cannot be read', async () => {
    const process = harness.start()
    await harness.db
      .insertInto('activity_segments')
      .values({ app_id: harness.appId, observations: Buffer.from('nonsense') })
      .execute()
    await harness.accept(sightings(2, today))
    expect(await counts(process)).toMatchObject({ devices: 2 })
  })

  it('removes everything of an app that was deleted, and what arrives for it later', async () => {
    const process = harness.start()
    await harness.accept(sightings(4, today, { event: installOf(1) }))
    await compact(process)
    await harness.db.deleteFrom('apps').where('id', '=', harness.appId).execute()
    await removeApp(process.context, { appId: harness.appId })
    await harness.accept(sightings(4, today))
    await compact(process)
    const tables = [
      'activity_segments',
      'activity_apps',
      'activity_devices',
      'activity_hours',
      'activity_days',
    ] as const
    for (const table of [...tables, 'activity_device_changes', 'activity_event_counts'] as const) {
      expect(await harness.db.selectFrom(table).selectAll().execute(), table).toEqual([])
    }
  })
})

function installOf(patch: number) {
  return { type: '__patch_install__', patch, receivedHourMs: today }
}
