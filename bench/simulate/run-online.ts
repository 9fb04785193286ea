import { setTimeout as sleep } from 'node:timers/promises'
import type { DeviceApi } from './device-api.ts'
import { identify, type Report } from './rules.ts'
import type { DueLaunch } from './schedule.ts'
import type { Simulation } from './simulation.ts'
import { countError } from './summary.ts'

export type OnlineOptions = {
  api: DeviceApi
  appId: string
  channel: string
  connections: number
  /** Simulated seconds in a real one; infinite: as fast as the server answers. */
  speed: number
  /** GETs what is offered, instead of pretending to. */
  isDownloading: boolean
  /** Stops before this whole minute of the period; the same simulation can go on from there. */
  untilSeconds?: number
  signal?: AbortSignal
}

/** A server that is away would otherwise be asked as fast as it can refuse. */
const pauseAfterErrorMs = 200

/**
 * Plays the launches against a server, as many at a time as there are connections. Launches of one device follow each
 * other, also where the server takes longer than the device sleeps. Never rejects for what the server does: that is
 * counted.
 */
export async function runOnline(simulation: Simulation, options: OnlineOptions): Promise<void> {
  const { speed, signal } = options
  const startedAtMs = performance.now()
  const startedAtSeconds = simulation.atSeconds
  const busy = new Map<number, Promise<void>>()
  const take = () => (signal?.aborted ? undefined : simulation.schedule.next(options.untilSeconds))

  const work = async () => {
    for (let due = take(); due !== undefined; due = take()) {
      const { device, atSeconds } = due
      const earlyMs = startedAtMs + ((atSeconds - startedAtSeconds) / speed) * 1000 - performance.now()
      if (earlyMs > 0) await sleep(earlyMs, undefined, { signal }).catch(() => undefined)
      if (signal?.aborted) return
      const launched = playAfter(busy.get(device), simulation, options, due)
      busy.set(device, launched)
      await launched
      if (busy.get(device) === launched) busy.delete(device)
      simulation.atSeconds = Math.max(simulation.atSeconds, atSeconds)
    }
  }
  await Promise.all(Array.from({ length: options.connections }, work))
}

async function playAfter(
  before: Promise<void> | undefined,
  simulation: Simulation,
  options: OnlineOptions,
  due: DueLaunch,
): Promise<void> {
  await before
  await playLaunch(simulation, options, due)
}

/** Boots, reports how that went, checks, and downloads what is new. */
async function playLaunch(simulation: Simulation, options: OnlineOptions, due: DueLaunch): Promise<void> {
  const { population, counts } = simulation
  const { api, appId: app_id, channel } = options
  const { device } = due
  const { releaseVersion: release_version, platform, arch, updater } = population.describe(device)
  const client_id = population.clientId(device)
  const place = { app_id, release_version, platform, arch }

  const attempt = async (action: () => Promise<void>): Promise<boolean> => {
    try {
      await action()
      return true
    } catch (error) {
      countError(counts, error instanceof Error ? error.message : String(error))
      await sleep(pauseAfterErrorMs, undefined, { signal: options.signal }).catch(() => undefined)
      return false
    }
  }
  const report = async ({ type, patch_number }: Report) => {
    const timestamp = simulation.startSeconds + due.atSeconds
    const message =
      type === '__patch_install_failure__' ? `engine_report: patch ${patch_number} failed to launch` : null
    const isStored = await attempt(() => api.report({ ...place, client_id, type, patch_number, timestamp, message }))
    if (isStored) counts.events[type] += 1
  }

  const booted = population.launch(device)
  if (booted !== undefined) await report(booted)
  const identity = identify(updater, client_id, population.installed(device))
  await attempt(async () => {
    const answer = await api.check({ ...place, channel, ...identity })
    counts.checks += 1
    const { wanted, isUninstalled } = population.takeAnswer(device, answer)
    if (isUninstalled) counts.uninstalls += 1
    if (wanted === undefined) return
    if (options.isDownloading) await api.download(wanted.download_url)
    population.install(device, wanted.number)
    counts.downloads += 1
    await report({ type: '__patch_download__', patch_number: wanted.number })
  })
}
