import type { Db } from '../db/connection.ts'
import { type AppAnswers, findRolledBack } from '../devices/app-answers.ts'
import type { DeviceIndex } from '../devices/device-index.ts'
import { insertDeviceEvents, type NewEvent } from '../devices/queries.ts'
import { dayMs, hourMs } from '../time.ts'
import { findLastFrame, insertSegments } from './frame-queries.ts'
import type { Frame, SegmentBytes } from './frames.ts'
import { createSegmentBuilder, maxContexts } from './segment.ts'

/** A device's clock that is further ahead, or behind, is not believed. */
const maxAheadMs = dayMs
const maxBehindMs = 32 * dayMs

type Committing = { db: Db; deviceIndex: Pick<DeviceIndex, 'findApp'>; isRecording: boolean }

/**
 * Commits frames of one writer, in their order, and leaves out those that were committed before. An event that is new makes
 * an observation, one that was sent again none. Returns how many observations of events there were.
 */
export async function commitFrames(deps: Committing, frames: Frame[]): Promise<number> {
  const [first] = frames
  if (first === undefined) return 0
  const { writerId } = first
  // Before the transaction, which would hold its locks while apps are loaded.
  const apps = deps.isRecording ? await findApps(deps.deviceIndex, frames) : new Map()
  let after = first.number - 1
  for (;;) {
    const fresh = frames.filter(({ number }) => number > after)
    if (fresh.length === 0) return 0
    const committed = await commitAfter(deps, { frames: fresh, after, apps })
    if (committed !== undefined) return committed
    // Some were committed by an attempt whose answer was lost, or one before them was dropped.
    after = await findLastFrame(deps.db, { writerId })
  }
}

class OtherLastFrameError extends Error {}

/** undefined, and nothing is changed: the last frame of the writer is another than `after`. */
async function commitAfter(
  { db, isRecording }: Committing,
  { frames, after, apps }: { frames: Frame[]; after: number; apps: Apps },
): Promise<number | undefined> {
  const last = frames.at(-1)
  if (last === undefined) return 0
  const position = { writerId: last.writerId, after, lastFrame: last.number }
  const segments = frames.flatMap((frame) => frame.segments)
  const received = frames.flatMap(({ events }) => events)
  if (received.length === 0) return (await insertSegments(db, { ...position, segments })) ? 0 : undefined
  try {
    return await db.transaction().execute(async (trx) => {
      const events = await insertDeviceEvents(trx, received)
      const ofEvents = isRecording ? encodeEvents(events, apps) : []
      const isNext = await insertSegments(trx, { ...position, segments: [...segments, ...ofEvents] })
      if (!isNext) throw new OtherLastFrameError()
      return isRecording ? events.length : 0
    })
  } catch (error) {
    if (error instanceof OtherLastFrameError) return undefined
    throw error
  }
}

type Apps = Map<string, AppAnswers | undefined>

async function findApps(deviceIndex: Pick<DeviceIndex, 'findApp'>, frames: Frame[]): Promise<Apps> {
  const ids = new Set(frames.flatMap(({ events }) => events.map(({ event }) => event.app_id)))
  return new Map(await Promise.all([...ids].map(async (id) => [id, await deviceIndex.findApp(id)] as const)))
}

function encodeEvents(events: NewEvent[], apps: Apps): SegmentBytes[] {
  const byApp = Map.groupBy(events, ({ app_id }) => app_id)
  return [...byApp].flatMap(([appId, all]) => {
    const segments: SegmentBytes[] = []
    for (let from = 0; from < all.length; from += maxContexts) {
      segments.push(encodeEventsOfApp(appId, all.slice(from, from + maxContexts), apps.get(appId)))
    }
    return segments
  })
}

function encodeEventsOfApp(appId: string, events: NewEvent[], app: AppAnswers | undefined): SegmentBytes {
  const builder = createSegmentBuilder()
  const contexts = new Map<string, number>()
  for (const event of events) {
    const { release_version, platform, type, patch_number, received_ms } = event
    const receivedHourMs = Math.floor(received_ms / hourMs) * hourMs
    const key = JSON.stringify([release_version, platform, type, patch_number, receivedHourMs])
    let context = contexts.get(key)
    if (context === undefined) {
      context = builder.addContext({
        release: release_version === '' ? null : release_version,
        platform,
        ...(type === '__patch_install__' ? { running: patch_number } : {}),
        rolledBack: findRolledBack(app, release_version),
        event: { type, patch: patch_number, receivedHourMs },
      })
      contexts.set(key, context)
    }
    builder.add(context, timeOfEvent(event), event.client_id)
  }
  return { appId, bytes: builder.encode(), count: builder.count() }
}

export function timeOfEvent({ occurred_ms, received_ms }: Pick<NewEvent, 'occurred_ms' | 'received_ms'>): number {
  const isBelievable = occurred_ms <= received_ms + maxAheadMs && occurred_ms >= received_ms - maxBehindMs
  return isBelievable ? occurred_ms : received_ms
}
