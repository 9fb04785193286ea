import type { PatchCheckRequest, PatchEvent } from '@godwit/contract'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Recorder } from '../../src/activity/recorder.ts'
import { buildAppAnswers } from '../../src/devices/app-answers.ts'
import { checkOf, clientOf, createRecorderHarness, deviceOf, eventOf, type RecorderHarness } from './harness.ts'

const nothing: readonly number[] = Object.freeze([])
const hourMs = 3_600_000

let harness: RecorderHarness
let recorder: Recorder
let appId: string
const now = new Date('2026-11-20T10:30:00.123Z')

beforeAll(async () => {
  harness = await createRecorderHarness()
  appId = harness.appId
  recorder = await harness.start({ clock: () => now })
})
beforeEach(async () => {
  await recorder.flush()
  await harness.db.deleteFrom('activity_segments').execute()
  await harness.db.deleteFrom('device_events').execute()
})
afterAll(() => harness.close())

async function recordChecks(...checks: Partial<PatchCheckRequest>[]) {
  for (const [device, overrides] of checks.entries()) {
    recorder.recordCheck(checkOf(appId, device, overrides), nothing)
  }
  await recorder.flush()
  return await harness.listObservations()
}

describe('a check', () => {
  it('is an observation of its device, at the time of the server, with what it was told to uninstall', async () => {
    const rolledBack = Object.freeze([2, 5])
    recorder.recordCheck(checkOf(appId, 1, { platform: 'ios' }), rolledBack)
    await recorder.flush()
    expect(await harness.listObservations()).toEqual([
      {
        client: clientOf(1),
        timeMs: now.getTime(),
        context: { release: '1.0.0+1', platform: 'ios', rolledBack: [2, 5] },
      },
    ])
  })

  it.each<[Partial<PatchCheckRequest>, number | undefined]>([
    [{}, undefined],
    [{ current_patch_number: null }, 0],
    [{ current_patch_number: 0 }, 0],
    [{ current_patch_number: 7 }, 7],
    [{ current_patch_number: 7, patch_number: 6 }, 7],
    [{ current_patch_number: null, patch_number: 6 }, 0],
    [{ patch_number: 6 }, 6],
    [{ patch_number: 0 }, 0],
    [{ patch_number: null }, undefined],
  ])('with %j runs %j', async (overrides, running) => {
    const observations = await recordChecks(overrides)
    expect(observations.map(({ context }) => context.running)).toEqual([running])
  })

  it('with an empty release_version has none', async () => {
    const [observation] = await recordChecks({ release_version: '' })
    expect(observation?.context.release).toBeNull()
  })

  it('without a client_id is no observation', async () => {
    expect(await recordChecks({ client_id: undefined }, { client_id: null }, { client_id: '' })).toEqual([])
  })

  it('of an app that is gone when it is committed leaves nothing', async () => {
    recorder.recordCheck(checkOf('gone', 1), nothing)
    expect(await recordChecks({})).toHaveLength(1)
    expect(await harness.listObservations('gone')).toEqual([])
  })

  it('whose release_version is longer than any is counted, and not recorded', async () => {
    const before = recorder.measure().dropped.name_too_long
    expect(await recordChecks({ release_version: 'x'.repeat(257) }, { release_version: 'x'.repeat(256) })).toHaveLength(
      1,
    )
    expect(recorder.measure().dropped.name_too_long).toBe(before + 1)
  })
})

describe('what is recorded', () => {
  it('is committed without anybody asking', async () => {
    recorder.recordCheck(checkOf(appId, 1), nothing)
    await expect.poll(() => harness.listObservations()).toHaveLength(1)
  })

  it('arrives as it was, whatever the devices have in common', async () => {
    const lists = [nothing, Object.freeze([1]), Object.freeze([1])]
    const sent = Array.from({ length: 20_000 }, (_, device) => ({
      check: checkOf(appId, device, {
        release_version: `1.0.${device % 7}`,
        platform: device % 2 === 0 ? 'android' : 'ios',
        ...(device % 3 === 0 ? {} : { current_patch_number: device % 5 }),
      }),
      rolledBack: lists[(device % 11) % 3] ?? nothing,
    }))
    for (const { check, rolledBack } of sent) recorder.recordCheck(check, rolledBack)
    await recorder.flush()
    const observations = (await harness.listObservations()).toSorted((a, b) => deviceOf(a.client) - deviceOf(b.client))
    expect(observations).toEqual(
      sent.map(({ check, rolledBack }) => ({
        client: check.client_id,
        timeMs: now.getTime(),
        context: {
          release: check.release_version,
          platform: check.platform,
          rolledBack,
          ...(check.current_patch_number === undefined ? {} : { running: check.current_patch_number }),
        },
      })),
    )
  })

  it('is counted, also what comes while something is committed', async () => {
    const before = recorder.measure().recorded
    recorder.recordCheck(checkOf(appId, 1), nothing)
    const flushing = recorder.flush()
    recorder.recordCheck(checkOf(appId, 2), nothing)
    const storing = recorder.storeEvent(eventOf(appId, 3))
    recorder.recordCheck(checkOf(appId, 4), nothing)
    await Promise.all([flushing, storing])
    await recorder.flush()
    expect(recorder.measure().recorded - before).toBe(4)
  })

  it('keeps apart more contexts than a segment holds', async () => {
    const count = 70_000
    for (let patch = 0; patch < count; patch += 1) {
      recorder.recordCheck(checkOf(appId, patch, { current_patch_number: patch }), nothing)
    }
    await recorder.flush()
    const observations = await harness.listObservations()
    expect(observations).toHaveLength(count)
    expect(observations.every(({ client, context }) => deviceOf(client) === context.running)).toBe(true)
  })

  it('is nothing when activity is off, but events are stored', async () => {
    const silent = await harness.start({ isActivityRecorded: false })
    silent.recordCheck(checkOf(appId, 1), nothing)
    await silent.storeEvent(eventOf(appId, 1))
    await silent.stop()
    expect(await harness.listObservations()).toEqual([])
    expect(await harness.countEvents()).toBe(1)
  })

  it('is stored before the recorder stops, and leaves no writer behind', async () => {
    const other = await harness.start()
    for (let device = 0; device < 1000; device += 1) other.recordCheck(checkOf(appId, device), nothing)
    const stored = other.storeEvent(eventOf(appId, 1))
    await other.stop()
    await stored
    expect(await harness.listObservations()).toHaveLength(1001)
    const writers = await harness.db.selectFrom('activity_writers').selectAll().execute()
    expect(writers).toHaveLength(1)
  })
})

describe('an event', () => {
  const timestamp = Math.floor(now.getTime() / 1000) - 90

  /** What is answered may be in the spool yet, when the database is slow. */
  async function store(event: PatchEvent): Promise<void> {
    await recorder.storeEvent(event)
    await recorder.flush()
  }

  it('is an observation at the time of the device, which an install says what runs', async () => {
    const release = { version: '1.0.0+1', patches: [{ number: 2, channel: null, is_rolled_back: true, artifacts: [] }] }
    harness.apps.set(appId, buildAppAnswers({ device_version: 1, releases: [release] }, String))
    await store(eventOf(appId, 1, { timestamp }))
    await store(eventOf(appId, 2, { timestamp, type: '__patch_install_failure__' }))
    await store(eventOf(appId, 3, { timestamp, release_version: '' }))
    const receivedHourMs = Math.floor(now.getTime() / hourMs) * hourMs
    const event = { type: '__patch_install__', patch: 3, receivedHourMs }
    const context = { release: '1.0.0+1', platform: 'android', rolledBack: [2], running: 3, event }
    const { running: _, ...failed } = { ...context, event: { ...event, type: '__patch_install_failure__' } }
    expect(await harness.listObservations()).toEqual([
      { client: clientOf(1), timeMs: timestamp * 1000, context },
      { client: clientOf(2), timeMs: timestamp * 1000, context: failed },
      { client: clientOf(3), timeMs: timestamp * 1000, context: { ...context, release: null, rolledBack: [] } },
    ])
  })

  it('is one observation, however often it is sent', async () => {
    await Promise.all(Array.from({ length: 10 }, () => store(eventOf(appId, 1, { timestamp }))))
    await store(eventOf(appId, 1, { timestamp }))
    expect(await harness.listObservations()).toHaveLength(1)
    await store(eventOf(appId, 1, { timestamp, patch_number: 4 }))
    expect(await harness.listObservations()).toHaveLength(2)
  })

  it.each([
    ['a day ahead', 86_400, true],
    ['more than a day ahead', 86_402, false],
    ['32 days behind', -32 * 86_400 + 1, true],
    ['more than 32 days behind', -32 * 86_400 - 1, false],
    ['at 1970', -Math.floor(now.getTime() / 1000), false],
  ])('of a clock that is %s is believed: %j seconds, %j', async (_name, offset, isBelieved) => {
    const sent = Math.floor(now.getTime() / 1000) + offset
    await store(eventOf(appId, 1, { timestamp: sent }))
    const [observation] = await harness.listObservations()
    expect(observation?.timeMs).toBe(isBelieved ? sent * 1000 : now.getTime())
  })

  it('comes after the checks that were answered before it', async () => {
    recorder.recordCheck(checkOf(appId, 1), nothing)
    await recorder.storeEvent(eventOf(appId, 1))
    recorder.recordCheck(checkOf(appId, 1), nothing)
    await recorder.flush()
    const kinds = (await harness.listObservations()).map(({ context }) => context.event?.type ?? 'check')
    expect(kinds).toEqual(['check', '__patch_install__', 'check'])
  })

  it('of an app that is gone leaves nothing', async () => {
    await store(eventOf('gone', 1))
    expect([await harness.countEvents(), await harness.listObservations('gone')]).toEqual([0, []])
  })
})
