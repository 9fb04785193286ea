import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createFrameWriter, type FrameWriter } from '../../src/activity/frame-writer.ts'
import type { Frame, FrameContents } from '../../src/activity/frames.ts'
import { openSpool } from '../../src/activity/spool.ts'
import { eventOf } from './harness.ts'

const log = pino({ level: 'silent' })

let root: string
let dir: string
/** What the database has taken, and what it does with the next frames. */
let committed: number[]
let answer: (frames: Frame[]) => Promise<void>
const started: FrameWriter[] = []

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'godwit-writer-'))
  dir = join(root, 'spool')
  committed = []
  answer = async () => {}
})
afterEach(async () => {
  answer = async () => {}
  for (const writer of started.splice(0)) await writer.stop()
  await rm(root, { recursive: true })
})

async function startWriter(options: { maxQueueBytes?: number; maxSpoolBytes?: number } = {}): Promise<FrameWriter> {
  const writerId = randomUUID()
  const { maxQueueBytes = 2 ** 20, maxSpoolBytes = 2 ** 30 } = options
  const spool = await openSpool({ dir, writerId, maxBytes: maxSpoolBytes, log, onEmptied: async () => {} })
  const commit = async (frames: Frame[]) => {
    await answer(frames)
    for (const { segments, events } of frames) committed.push(segments[0]?.count ?? events[0]?.receivedMs ?? 0)
  }
  const isRefusal = (error: unknown) => error instanceof RangeError
  const writer = createFrameWriter({ writerId, commit, isRefusal, spool, log, maxQueueBytes })
  started.push(writer)
  return writer
}

/** `count` tells frames apart. */
function contentsOf(count: number, sizeBytes = 10): FrameContents {
  return { segments: [{ appId: 'a', bytes: Buffer.alloc(sizeBytes), count }], events: [] }
}

const away = async () => {
  throw new Error('Connection terminated')
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index)
}

describe('the frame writer', () => {
  it('commits in order what is written, and what came meanwhile together', async () => {
    const sizes: number[] = []
    answer = async (frames) => void sizes.push(frames.length)
    const writer = await startWriter()
    await Promise.all(range(0, 100).map((count) => writer.write(contentsOf(count))))
    expect(committed).toEqual(range(0, 100))
    expect(sizes.length).toBeLessThan(10)
    expect(await readdir(root)).toEqual([])
  })

  it('has frames on disk soon when the database does not answer, and commits them once when it does', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    answer = () => promise
    const writer = await startWriter()
    await Promise.all(range(0, 10).map((count) => writer.write(contentsOf(count))))
    expect(committed).toEqual([])
    expect(writer.measure().spoolBytes).toBeGreaterThan(0)
    await Promise.all(range(10, 20).map((count) => writer.write(contentsOf(count))))
    answer = async () => {}
    resolve()
    await writer.flush()
    expect([...new Set(committed)]).toEqual(range(0, 20))
    expect(writer.measure()).toMatchObject({ spoolBytes: 0, queuedBytes: 0 })
  })

  it('tells readers when the database is away, asks it anew for each, and is true again afterwards', async () => {
    answer = away
    const writer = await startWriter()
    await writer.write(contentsOf(1))
    await expect(writer.flush()).rejects.toMatchObject({ code: 'unavailable' })
    answer = async () => {}
    await writer.flush()
    expect(committed).toEqual([1])
  })

  it('commits what another left behind before its own', async () => {
    answer = away
    const first = await startWriter()
    await Promise.all(range(0, 5).map((count) => first.write(contentsOf(count))))
    await first.stop()
    const second = await startWriter()
    const written = second.write(contentsOf(5))
    await written
    await expect(second.flush()).rejects.toMatchObject({ code: 'unavailable' })
    answer = async () => {}
    await second.flush()
    expect(committed).toEqual(range(0, 6))
  })

  it('drops a frame that the database refuses, counts it, and goes on with the others', async () => {
    answer = async (frames) => {
      if (frames.some(({ segments }) => segments[0]?.count === 7)) throw new RangeError('bad')
    }
    const writer = await startWriter()
    const outcomes = await Promise.allSettled(range(0, 20).map((count) => writer.write(contentsOf(count))))
    expect(outcomes.flatMap(({ status }, count) => (status === 'rejected' ? [count] : []))).toEqual([7])
    expect(committed).toEqual(range(0, 20).filter((count) => count !== 7))
    expect(writer.measure().droppedRefused).toBe(7)
  })

  it('keeps in memory, up to its limit, what neither the database nor the disk takes, and counts the rest', async () => {
    await writeFile(dir, 'not a folder')
    answer = away
    const writer = await startWriter({ maxQueueBytes: 20_000 })
    const event = writer.write({ segments: [], events: [{ event: eventOf('a', 1), receivedMs: 99 }] })
    await expect(event).rejects.toMatchObject({ code: 'unavailable' })
    const outcomes = await Promise.allSettled(range(1, 40).map((count) => writer.write(contentsOf(count, 1000))))
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true)
    const { droppedBacklog, queuedBytes } = writer.measure()
    expect(queuedBytes).toBeLessThan(20_000)
    answer = async () => {}
    await writer.flush()
    // What it had refused to vouch for may come all the same.
    const kept = range(1, committed.length)
    expect(committed).toEqual([99, ...kept])
    expect(droppedBacklog).toBe(range(committed.length, 40).reduce((sum, count) => sum + count, 0))
  })

  it('keeps to the limit of the spool', async () => {
    answer = away
    const writer = await startWriter({ maxQueueBytes: 5000, maxSpoolBytes: 10_000 })
    for (const count of range(1, 40)) await writer.write(contentsOf(count, 1000)).catch(() => undefined)
    const { spoolBytes, queuedBytes, droppedBacklog } = writer.measure()
    expect(spoolBytes).toBeLessThanOrEqual(10_000)
    expect(queuedBytes).toBeLessThanOrEqual(5000)
    expect(droppedBacklog).toBeGreaterThan(0)
    answer = async () => {}
    await writer.flush()
    expect(committed).toEqual(range(1, committed.length + 1))
    await writer.write(contentsOf(50))
    expect(committed.at(-1)).toBe(50)
  })

  it('goes back to memory under a load that never stops', async () => {
    answer = away
    const writer = await startWriter()
    let isOver = false
    const load = (async () => {
      for (let count = 1; !isOver; count += 1) {
        await writer.write(contentsOf(count))
        // The writer alone would leave no timer a chance.
        await new Promise(setImmediate)
      }
    })()
    await expect.poll(() => writer.measure().spoolBytes).toBeGreaterThan(10_000)
    answer = async () => {}
    await expect.poll(() => writer.measure().spoolBytes, { interval: 1 }).toBe(0)
    isOver = true
    await load
    await writer.flush()
    expect([...new Set(committed)]).toEqual(range(1, Math.max(...committed) + 1))
  })

  it('stops without losing anything when the database goes away at that moment', async () => {
    const { promise, reject } = Promise.withResolvers<void>()
    answer = () => promise
    const first = await startWriter()
    const written = Promise.all(range(0, 10).map((count) => first.write(contentsOf(count))))
    const stopping = first.stop()
    reject(new Error('Connection terminated'))
    await Promise.all([stopping, written])
    expect(committed).toEqual([])
    answer = async () => {}
    const second = await startWriter()
    await second.flush()
    expect(committed).toEqual(range(0, 10))
  })
})
