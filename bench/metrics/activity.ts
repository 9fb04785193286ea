import type { ReleasePlatform } from '@godwit/contract'
import { draw, drawFraction, draws, pickShare, type Share } from '../simulate/random.ts'
import { createSchedule } from '../simulate/schedule.ts'

export type Plan = {
  devices: number
  days: number
  seed: number
  /** Unix seconds: the midnight with which the period begins. */
  startSeconds: number
  launchesPerDay: number
}

/** From its day on, the patch that devices of the release are offered. */
type Offer = { day: number; patch: number }

export type PlannedRelease = { version: string; patches: number; rolledBack: number[]; offers: Offer[] }

/** In the order in which they were made. In the second, patch 3 was rolled back. */
export const releases: Share<PlannedRelease>[] = [
  { weight: 20, value: { version: '1.0.0+1', patches: 1, rolledBack: [], offers: [{ day: 0, patch: 1 }] } },
  {
    weight: 30,
    value: {
      version: '1.1.0+2',
      patches: 3,
      rolledBack: [3],
      offers: [
        { day: 2, patch: 1 },
        { day: 8, patch: 2 },
        { day: 15, patch: 3 },
        { day: 20, patch: 2 },
      ],
    },
  },
  {
    weight: 50,
    value: {
      version: '1.2.0+3',
      patches: 4,
      rolledBack: [],
      offers: [
        { day: 4, patch: 1 },
        { day: 10, patch: 2 },
        { day: 18, patch: 3 },
        { day: 24, patch: 4 },
      ],
    },
  },
]

/** Patches have artifacts for all of them. */
export const places: Share<{ platform: ReleasePlatform; arch: string }>[] = [
  { weight: 62, value: { platform: 'android', arch: 'aarch64' } },
  { weight: 6, value: { platform: 'android', arch: 'arm' } },
  { weight: 2, value: { platform: 'android', arch: 'x86_64' } },
  { weight: 30, value: { platform: 'ios', arch: 'aarch64' } },
]

/** What a device is: never changes. */
export type Kind = { release: PlannedRelease; platform: ReleasePlatform; arch: string }

export const kinds: Kind[] = releases.flatMap(({ value: release }) =>
  places.map(({ value }) => ({ release, ...value })),
)

const daySeconds = 86_400
const spread = 0.1

export type ActivityCounts = {
  observations: number
  /** Of days, releases, patches and platforms: how many devices, summed up. What the bitmaps of days hold. */
  deviceDays: number
  /** The same for hours. */
  deviceHours: number
}

export type Activity = {
  kindOf: (device: number) => number
  /** Goes on with the day until `onSeen` returns false; true when there may be more of it. */
  play: (day: number, onSeen: (device: number, atSeconds: number, patch: number) => boolean) => boolean
  counts: ActivityCounts
}

/**
 * When devices are seen, in the order of time, and what they run: what was offered to them the time before. The same for
 * the same plan.
 */
export function createActivity({ devices, days, seed, startSeconds, launchesPerDay }: Plan): Activity {
  const schedule = createSchedule({ devices, days, seed, startSeconds, launchesPerDay, spread })
  const kindOf = new Uint8Array(devices)
  for (let device = 0; device < devices; device += 1) {
    const release = pickShare(releases, drawFraction(seed, device, draws.release))
    kindOf[device] = release * places.length + pickShare(places, drawFraction(seed, device, draws.place))
  }
  const next = new Uint8Array(devices)
  const running = new Uint8Array(devices)
  const lastHour = new Int32Array(devices).fill(-1)
  const counts: ActivityCounts = { observations: 0, deviceDays: 0, deviceHours: 0 }
  let offered: number[] = []
  let today = -1

  const look = (device: number, atSeconds: number): number => {
    const patch = next[device] ?? 0
    const hour = Math.floor(atSeconds / 3600)
    const before = lastHour[device] ?? -1
    const isOther = patch !== running[device]
    counts.observations += 1
    if (isOther || before !== hour) counts.deviceHours += 1
    if (isOther || before < 0 || Math.floor(before / 24) !== Math.floor(hour / 24)) counts.deviceDays += 1
    lastHour[device] = hour
    running[device] = patch
    next[device] = offered[kindOf[device] ?? 0] ?? 0
    return patch
  }
  return {
    kindOf: (device) => kindOf[device] ?? 0,
    play: (day, onSeen) => {
      if (day !== today) offered = kinds.map(({ release }) => findOffered(release, day))
      today = day
      const untilSeconds = (day + 1) * daySeconds
      for (let due = schedule.next(untilSeconds); due !== undefined; due = schedule.next(untilSeconds)) {
        if (!onSeen(due.device, due.atSeconds, look(due.device, due.atSeconds))) return true
      }
      return false
    },
    counts,
  }
}

function findOffered({ offers }: PlannedRelease, day: number): number {
  return offers.findLast((offer) => offer.day <= day)?.patch ?? 0
}

const hexPairs = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const highDigits = Uint8Array.from(hexPairs, (pair) => pair.charCodeAt(0))
const lowDigits = Uint8Array.from(hexPairs, (pair) => pair.charCodeAt(1))
const dash = 45
export const clientIdLength = 36

export function clientIdOf(seed: number, device: number): string {
  const bytes = Buffer.alloc(clientIdLength)
  writeClientId(bytes, 0, seed, device)
  return bytes.toString('latin1')
}

/** A random UUID (RFC 9562, section 5.4) of the device, in ASCII. */
export function writeClientId(target: Uint8Array, offset: number, seed: number, device: number): void {
  let at = offset
  for (let word = 0; word < 4; word += 1) {
    let bits = draw(seed, device, draws.clientId + word)
    if (word === 1) bits = (bits & 0xffff0fff) | 0x4000
    if (word === 2) bits = (bits & 0x3fffffff) | 0x80000000
    for (let byte = 0; byte < 4; byte += 1) {
      if ((word === 1 || word === 2) && byte % 2 === 0) {
        target[at] = dash
        at += 1
      }
      const value = (bits >>> (24 - byte * 8)) & 255
      target[at] = highDigits[value] ?? 0
      target[at + 1] = lowDigits[value] ?? 0
      at += 2
    }
  }
}
