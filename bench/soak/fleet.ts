import type { PatchCheckResponse, ReleasePlatform } from '@godwit/contract'
import type { DeviceApi } from '../simulate/device-api.ts'
import { drawClientId, drawFraction } from '../simulate/random.ts'

export const versions = ['1.0.0+1', '1.1.0+2']
export const platforms: ReleasePlatform[] = ['android', 'ios']
export const patchesPerRelease = 2
export const arch = 'aarch64'

/** What happens at a launch, and how often. */
const chances = { upgrades: 0.0005, downloads: 0.05, fails: 0.02, repeats: 0.02 }
/** Of the draws of chance, beside those that make a client_id. */
const purposes = { upgrades: 101, downloads: 102, fails: 103, repeats: 104, release: 105, platform: 106 }

/** What a server that counts right has to say at the end. */
export type Truth = {
  devices: number
  byPlatform: Record<string, number>
  /** By the release of the last request. */
  byVersion: Record<string, number>
  /** Devices that were seen on a release. */
  seenOn: Record<string, number>
  /** Per release, then per patch number from 1: devices that have reported an install of it or of a higher one. */
  adoption: Record<string, number[]>
  /** Per release, then per patch number from 1. */
  installs: Record<string, number[]>
  downloads: Record<string, number[]>
}

export type Fleet = {
  /** Plays the launch of a device: reports what it has to, checks, and takes or leaves the offer. */
  launch: (turn: number) => Promise<void>
  listTruth: () => Truth
}

export type FleetOptions = {
  api: DeviceApi
  appId: string
  devices: number
  seed: number
  /** After each answer. */
  onAnswer: (kind: 'check' | 'event', latencyMs: number) => void
}

/** Devices that take turns. They update their app now and then, and try patches more often than real ones. */
export function createFleet({ api, appId, devices, seed, onAnswer }: FleetOptions): Fleet {
  const release = new Uint8Array(devices)
  const running = new Uint8Array(devices)
  const next = new Uint8Array(devices)
  const isSeen = new Uint8Array(devices)
  /** Per release and patch number, with 0 for having been seen there at all: which devices. */
  const marks = versions.map(() => Array.from({ length: patchesPerRelease + 1 }, () => new Uint8Array(devices)))
  const countEvents = () => versions.map(() => new Array<number>(patchesPerRelease + 1).fill(0))
  const counts = { installs: countEvents(), downloads: countEvents() }
  for (let device = 0; device < devices; device += 1) {
    release[device] = drawFraction(seed, device, purposes.release) < 0.7 ? 0 : 1
  }
  const platformOf = (device: number) => platforms[drawFraction(seed, device, purposes.platform) < 0.7 ? 0 : 1] ?? 'ios'
  const mark = (device: number, patch: number) => {
    const set = marks[release[device] ?? 0]?.[patch]
    if (set !== undefined) set[device] = 1
  }
  const timed = async <Answer>(kind: 'check' | 'event', ask: () => Promise<Answer>): Promise<Answer> => {
    const askedAt = performance.now()
    const answer = await ask()
    onAnswer(kind, performance.now() - askedAt)
    return answer
  }

  const play = async (device: number, turn: number) => {
    const isChance = (what: keyof typeof chances) => drawFraction(seed, device, purposes[what], turn) < chances[what]
    if (isChance('upgrades') && release[device] === 0) {
      release[device] = 1
      running[device] = 0
      next[device] = 0
    }
    const client_id = drawClientId(seed, device)
    const release_version = versions[release[device] ?? 0] ?? ''
    const place = { app_id: appId, release_version, platform: platformOf(device), arch }
    const report = async (type: string, patch_number: number) => {
      const event = { ...place, client_id, type, patch_number, timestamp: Math.floor(Date.now() / 1000), message: null }
      await timed('event', () => api.report(event))
      if (isChance('repeats')) await timed('event', () => api.report(event))
      isSeen[device] = 1
      mark(device, 0)
    }
    const pending = next[device] ?? 0
    if (pending !== 0 && pending !== running[device]) {
      if (isChance('fails')) {
        await report('__patch_install_failure__', pending)
        next[device] = running[device] ?? 0
      } else {
        await report('__patch_install__', pending)
        running[device] = pending
        mark(device, pending)
        countEvent(counts.installs, device, pending)
      }
    }
    const answer = await timed('check', () => api.check({ ...place, channel: 'stable', client_id }))
    isSeen[device] = 1
    mark(device, 0)
    const wanted = takeAnswer(device, answer)
    if (wanted === undefined || !isChance('downloads')) return
    await report('__patch_download__', wanted)
    countEvent(counts.downloads, device, wanted)
    next[device] = wanted
  }
  const countEvent = (of: number[][], device: number, patch: number) => {
    const ofRelease = of[release[device] ?? 0]
    if (ofRelease !== undefined) ofRelease[patch] = (ofRelease[patch] ?? 0) + 1
  }
  const takeAnswer = (device: number, answer: PatchCheckResponse): number | undefined => {
    for (const number of answer.rolled_back_patch_numbers ?? []) {
      if (running[device] === number) running[device] = 0
      if (next[device] === number) next[device] = 0
    }
    const offered = answer.patch?.number
    return offered === running[device] || offered === next[device] ? undefined : offered
  }

  const countSeen = (is: (device: number) => boolean) => {
    let count = 0
    for (let device = 0; device < devices; device += 1) if (isSeen[device] === 1 && is(device)) count += 1
    return count
  }
  const perRelease = <Value>(value: (index: number) => Value) =>
    Object.fromEntries(versions.map((version, index) => [version, value(index)]))
  return {
    launch: (turn) => play(turn % devices, Math.floor(turn / devices)),
    listTruth: () => ({
      devices: countSeen(() => true),
      byPlatform: Object.fromEntries(
        platforms.map((platform) => [platform, countSeen((device) => platformOf(device) === platform)]),
      ),
      byVersion: perRelease((index) => countSeen((device) => release[device] === index)),
      seenOn: perRelease((index) => countSeen((device) => marks[index]?.[0]?.[device] === 1)),
      adoption: perRelease((index) =>
        Array.from({ length: patchesPerRelease }, (_, below) =>
          countSeen((device) => marks[index]?.slice(below + 1).some((set) => set[device] === 1) ?? false),
        ),
      ),
      installs: perRelease((index) => counts.installs[index]?.slice(1) ?? []),
      downloads: perRelease((index) => counts.downloads[index]?.slice(1) ?? []),
    }),
  }
}
