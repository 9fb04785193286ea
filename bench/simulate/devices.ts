import type { PatchCheckResponse, ReleasePlatform } from '@godwit/contract'
import { drawClientId, drawFraction, draws, pickShare, type Share } from './random.ts'
import { type Installed, install, launch, type Report, takeAnswer, type Updater } from './rules.ts'

export type PopulationOptions = {
  devices: number
  seed: number
  releases: Share<string>[]
  platforms: Share<ReleasePlatform>[]
  /** Of the patches that a device installs, the part that does not boot. */
  failureRate: number
  /** The part of the devices whose updater is older than client_id in checks. */
  oldUpdaters: number
}

export type Device = { releaseVersion: string; platform: ReleasePlatform; arch: string; updater: Updater }

type Wanted = NonNullable<PatchCheckResponse['patch']>

/** All devices: 20 bytes each, and what failed on a few. */
export type Population = {
  count: number
  describe: (device: number) => Device
  /** Kept for the device's life. */
  clientId: (device: number) => string
  installed: (device: number) => Installed
  /** Boots, and returns what the device has to report. */
  launch: (device: number) => Report | undefined
  /** Returns the patch that the device downloads now, and whether it lost the one that it would have run next. */
  takeAnswer: (device: number, answer: PatchCheckResponse) => { wanted: Wanted | undefined; isUninstalled: boolean }
  install: (device: number, patchNumber: number) => void
  /** Of the devices that have launched: how many run which patch of which release. */
  countRunning: () => Map<string, Map<number, number>>
  countLaunched: () => number
}

/** How many of a platform's devices have each; other arches are rare enough to be left out. */
const arches: Record<ReleasePlatform, Share<string>[]> = {
  android: [
    { value: 'aarch64', weight: 88 },
    { value: 'arm', weight: 9 },
    { value: 'x86_64', weight: 3 },
  ],
  ios: [{ value: 'aarch64', weight: 1 }],
  linux: [{ value: 'x86_64', weight: 1 }],
  macos: [
    { value: 'aarch64', weight: 80 },
    { value: 'x86_64', weight: 20 },
  ],
  windows: [{ value: 'x86_64', weight: 1 }],
}

export function isPlatform(text: string): text is ReleasePlatform {
  return Object.hasOwn(arches, text)
}

/** Patch numbers are below this, so that device and number fit into one exact integer. */
export const patchNumberLimit = 2 ** 20

export function createPopulation(options: PopulationOptions): Population {
  const { devices: count, seed, releases } = options
  const describe = createDescriber(options)
  const running = new Uint32Array(count)
  const good = new Uint32Array(count)
  const next = new Uint32Array(count)
  const hasLaunched = new Uint8Array(count)
  const failed = new Set<number>()

  const installed = (device: number): Installed => ({
    running: running[device] ?? 0,
    good: good[device] ?? 0,
    next: next[device] ?? 0,
  })
  const write = (device: number, state: Installed) => {
    running[device] = state.running
    good[device] = state.good
    next[device] = state.next
  }
  const keyOfFailure = (device: number, patchNumber: number) => device * patchNumberLimit + patchNumber
  return {
    count,
    describe,
    clientId: (device) => drawClientId(seed, device),
    installed,
    launch: (device) => {
      const fails = (number: number) => drawFraction(seed, device, draws.boot, number) < options.failureRate
      const { installed: state, report } = launch(installed(device), fails)
      write(device, state)
      hasLaunched[device] = 1
      if (report?.type === '__patch_install_failure__') failed.add(keyOfFailure(device, report.patch_number))
      return report
    },
    takeAnswer: (device, answer) => {
      const before = installed(device)
      const taken = takeAnswer(before, answer, (number) => failed.has(keyOfFailure(device, number)))
      write(device, taken.installed)
      return { wanted: taken.wanted, isUninstalled: taken.installed.next !== before.next }
    },
    install: (device, patchNumber) => write(device, install(installed(device), patchNumber)),
    countRunning: () => {
      const counts = new Map<string, Map<number, number>>(releases.map(({ value }) => [value, new Map()]))
      for (let device = 0; device < count; device += 1) {
        if (hasLaunched[device] !== 1) continue
        const ofRelease = counts.get(describe.releaseVersion(device))
        const number = running[device] ?? 0
        ofRelease?.set(number, (ofRelease.get(number) ?? 0) + 1)
      }
      return counts
    },
    countLaunched: () => hasLaunched.reduce((sum, launched) => sum + launched, 0),
  }
}

/** Who a device is never changes, so it is drawn once and kept as two bytes. */
function createDescriber({ devices, seed, releases, platforms, oldUpdaters }: PopulationOptions) {
  const updaters: Share<Updater>[] = [
    { value: 'current', weight: 1 - oldUpdaters },
    { value: 'without client_id', weight: oldUpdaters / 2 },
    { value: 'with patch_number', weight: oldUpdaters / 2 },
  ]
  const totalPlatforms = platforms.reduce((sum, { weight }) => sum + weight, 0)
  const kinds: Share<Omit<Device, 'releaseVersion'>>[] = platforms.flatMap(({ value: platform, weight }) => {
    const totalArches = arches[platform].reduce((sum, arch) => sum + arch.weight, 0)
    return arches[platform].flatMap((arch) =>
      updaters.map((updater) => ({
        value: { platform, arch: arch.value, updater: updater.value },
        weight: (weight / totalPlatforms) * (arch.weight / totalArches) * updater.weight,
      })),
    )
  })
  const release = new Uint8Array(devices)
  const kind = new Uint8Array(devices)
  for (let device = 0; device < devices; device += 1) {
    release[device] = pickShare(releases, drawFraction(seed, device, draws.release))
    kind[device] = pickShare(kinds, drawFraction(seed, device, draws.place))
  }
  const releaseVersion = (device: number) => releases[release[device] ?? 0]?.value ?? ''
  const describe = (device: number): Device => {
    const found = kinds[kind[device] ?? 0]
    if (found === undefined) throw new RangeError(`there is no device ${device}`)
    return { releaseVersion: releaseVersion(device), ...found.value }
  }
  return Object.assign(describe, { releaseVersion })
}
