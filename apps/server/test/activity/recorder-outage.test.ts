import { randomUUID } from 'node:crypto'
import { cp, readdir } from 'node:fs/promises'
import pino from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { commitFrames } from '../../src/activity/commit-frames.ts'
import { createFrameWriter } from '../../src/activity/frame-writer.ts'
import type { Frame } from '../../src/activity/frames.ts'
import type { Recorder } from '../../src/activity/recorder.ts'
import { createSegmentBuilder } from '../../src/activity/segment.ts'
import { openSpool } from '../../src/activity/spool.ts'
import { startOutage } from '../support/outage.ts'
import { checkOf, clientOf, createRecorderHarness, deviceOf, eventOf, type RecorderHarness } from './harness.ts'

const nothing: readonly number[] = Object.freeze([])

let harness: RecorderHarness
let appId: string

beforeEach(async () => {
  harness = await createRecorderHarness()
  appId = harness.appId
})
afterEach(() => harness.close())

function recordChecks(recorder: Recorder, from: number, to: number): void {
  for (let device = from; device < to; device += 1) recorder.recordCheck(checkOf(appId, device), nothing)
}

async function storeEvents(recorder: Recorder, from: number, to: number): Promise<void> {
  const devices = Array.from({ length: to - from }, (_, index) => from + index)
  await Promise.all(devices.map((device) => recorder.storeEvent(eventOf(appId, device))))
}

/** Of checks, in the order of their commit. */
async function listDevices(): Promise<number[]> {
  const observations = await harness.listObservations()
  return observations.filter(({ context }) => context.event === undefined).map(({ client }) => deviceOf(client))
}

async function expectAll(devices: number, events: number): Promise<void> {
  expect(await listDevices()).toEqual(Array.from({ length: devices }, (_, device) => device))
  expect(await harness.countEvents()).toBe(events)
  expect((await harness.listObservations()).length).toBe(devices + events)
}

/** Asks until the database is there again. */
async function flush(recorder: Pick<Recorder, 'flush'>): Promise<void> {
  const isFlushed = () =>
    recorder.flush().then(
      () => true,
      () => false,
    )
  await expect.poll(isFlushed, { timeout: 10_000 }).toBe(true)
}

describe('while the database is away', () => {
  it('events are answered, and all arrives exactly once and in order when it is back', async () => {
    const recorder = await harness.start()
    recordChecks(recorder, 0, 100)
    await recorder.flush()
    const outage = await startOutage(harness)
    for (let round = 1; round < 6; round += 1) {
      recordChecks(recorder, round * 100, round * 100 + 100)
      await storeEvents(recorder, round * 10, round * 10 + 10)
    }
    await expect(recorder.flush()).rejects.toMatchObject({ code: 'unavailable' })
    await storeEvents(recorder, 10, 20)
    expect(recorder.measure().spoolBytes).toBeGreaterThan(12_000)
    await outage.end()
    recordChecks(recorder, 600, 700)
    await flush(recorder)
    await expectAll(700, 50)
    expect(recorder.measure()).toMatchObject({ recorded: 750, spoolBytes: 0, backlogBytes: 0 })
    await recorder.stop()
    expect(await readdir(harness.dir)).toEqual([])
  })

  it('a stop leaves all in the spool, and the next start brings it to the database', async () => {
    const first = await harness.start()
    recordChecks(first, 0, 50)
    await first.flush()
    const outage = await startOutage(harness)
    await storeEvents(first, 0, 10)
    recordChecks(first, 50, 100)
    await first.stop()
    const second = await harness.start()
    recordChecks(second, 100, 150)
    await second.stop()
    await outage.end()
    const third = await harness.start()
    recordChecks(third, 150, 200)
    await flush(third)
    await expectAll(200, 10)
  })

  it('what a killed process leaves behind is committed once, however much of it had been already', async () => {
    const first = await harness.start()
    const outage = await startOutage(harness)
    recordChecks(first, 0, 100)
    await storeEvents(first, 0, 10)
    await expect.poll(() => first.measure().backlogBytes).toBe(0)
    // The files as a kill at this moment would leave them, in a folder without the lock of the process that goes on.
    const copy = `${harness.dir}-copy`
    await cp(harness.dir, copy, { recursive: true, filter: (path) => !path.endsWith('.lock') })
    await outage.end()
    await flush(first)
    const second = await harness.start({ dir: copy })
    await flush(second)
    await expectAll(100, 10)
    await second.stop()
    expect(await readdir(copy)).toEqual([])
  })
})

describe('a frame', () => {
  function frameOf(writerId: string, number: number): Frame {
    const builder = createSegmentBuilder()
    const context = builder.addContext({ release: '1', platform: 'ios', rolledBack: [] })
    builder.add(context, 1_790_000_000_000, clientOf(number))
    const segments = [{ appId, bytes: builder.encode(), count: 1 }]
    return { writerId, number, segments, events: [{ event: eventOf(appId, number), receivedMs: Date.now() }] }
  }
  const deps = () => ({ db: harness.db, deviceIndex: { findApp: () => undefined }, isRecording: true })

  it('is committed once, also together with others, and also twice at a time', async () => {
    const frames = Array.from({ length: 5 }, (_, index) => frameOf('b7c3f1de-5a52-4f54-8d0e-9b6c7f1a2e11', index + 1))
    await commitFrames(deps(), frames.slice(0, 2))
    await Promise.all([commitFrames(deps(), frames), commitFrames(deps(), frames.slice(0, 4))])
    await commitFrames(deps(), frames)
    expect((await listDevices()).toSorted()).toEqual([1, 2, 3, 4, 5])
    expect(await harness.listObservations()).toHaveLength(10)
  })

  it('whose commit succeeded without an answer is not committed again', async () => {
    const writerId = randomUUID()
    const log = pino({ level: 'silent' })
    const options = { dir: harness.dir, writerId, maxBytes: 2 ** 20, log, onEmptied: async () => {} }
    let attempts = 0
    const commit = async (frames: Frame[]) => {
      await commitFrames(deps(), frames)
      attempts += 1
      if (attempts <= 3) throw new Error('Connection terminated unexpectedly')
    }
    const spool = await openSpool(options)
    const writer = createFrameWriter({ writerId, commit, isRefusal: () => false, spool, log, maxQueueBytes: 2 ** 20 })
    for (let number = 1; number <= 20; number += 1) {
      const { segments, events } = frameOf(writerId, number)
      await writer.write({ segments, events })
    }
    await flush(writer)
    await writer.stop()
    expect(attempts).toBeGreaterThan(3)
    expect(await listDevices()).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
    expect(await harness.listObservations()).toHaveLength(40)
  })
})

describe('what nobody takes', () => {
  it('is counted past the limits, and the rest arrives', async () => {
    const recorder = await harness.start({ maxSpoolBytes: 5000, maxBacklogBytes: 5000 })
    const outage = await startOutage(harness)
    let sent = 0
    const isDropping = () => {
      recordChecks(recorder, sent, sent + 100)
      sent += 100
      return recorder.measure().dropped.backlog > 0
    }
    await expect.poll(isDropping, { timeout: 10_000, interval: 60 }).toBe(true)
    const { backlogBytes, spoolBytes } = recorder.measure()
    expect(spoolBytes).toBeLessThanOrEqual(5000)
    expect(backlogBytes).toBeLessThanOrEqual(5000 + 20_000)
    await outage.end()
    await flush(recorder)
    const { dropped } = recorder.measure()
    expect((await listDevices()).length).toBe(sent - dropped.backlog)
    recordChecks(recorder, sent, sent + 1)
    await flush(recorder)
    expect((await listDevices()).at(-1)).toBe(sent)
  })
})
