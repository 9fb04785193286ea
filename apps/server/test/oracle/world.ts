import type { Client } from '@godwit/sdk'
import { expect } from 'vitest'
import { createTestApp, createTestRelease, findChannelId, sha256 } from '../support/publishing.ts'
import type { TestAccount, TestService } from '../support/test-service.ts'
import {
  type Command,
  clientIds,
  type ImportedLine,
  type ImportedTime,
  type Place,
  patchPlatforms,
  publishedReleases,
  versions,
} from './commands.ts'
import type { Request } from './requests.ts'

const hourMs = 3_600_000

type Release = { id: number; version: string; patchIds: number[]; rolledBack: Set<number> }

/** An app on the real service, and all that was sent to it and still counts. */
export type World = {
  service: TestService
  api: Client
  appId: string
  releases: Release[]
  requests: Request[]
  /** Lines that were imported ever, also of devices that were deleted since. */
  importedLines: Set<string>
  fileBefore: ImportedFile
  /** Always odd. */
  clock: { nowMs: number }
}

type ImportedFile = { text: string; requests: (Request | undefined)[] }

export async function createWorld(
  service: TestService,
  account: TestAccount,
  clock: { nowMs: number },
): Promise<World> {
  const { api } = account
  const appId = await createTestApp(account)
  const channelId = await findChannelId(api, appId)
  const releases: Release[] = []
  for (const version of versions.slice(0, publishedReleases)) {
    const id = await createTestRelease(api, appId, version)
    const patchIds: number[] = []
    for (const platforms of patchPlatforms) {
      const patch = await api.createPatch({ params: { appId }, body: { release_id: id } })
      for (const platform of platforms) {
        const body = { platform, arch: 'aarch64', hash: sha256(Buffer.from(String(patch.id))), size: 10 }
        await api.createPatchArtifact({ params: { appId, patchId: patch.id }, body })
      }
      await api.promotePatch({ params: { appId }, body: { patch_id: patch.id, channel_id: channelId } })
      patchIds.push(patch.id)
    }
    releases.push({ id, version, patchIds, rolledBack: new Set() })
  }
  const fileBefore = { text: '', requests: [] }
  return { service, api, appId, releases, requests: [], importedLines: new Set(), fileBefore, clock }
}

/** Does it on the service, and notes what counts of it. */
export async function perform(world: World, command: Exclude<Command, { do: 'ask' }>): Promise<void> {
  switch (command.do) {
    case 'check':
      return await check(world, command)
    case 'event':
      return await report(world, command)
    case 'import':
      return await importLines(world, command)
    case 'roll':
      return await roll(world, command)
    case 'delete':
      return await deleteDevice(world, command)
    case 'wait':
      world.clock.nowMs += command.ms + (command.ms % 2)
      return
    case 'compact':
      return await world.service.deps.activityStore.compact({ appId: world.appId })
    case 'restart':
      return await world.service.restart()
  }
}

async function check(world: World, { device, place, patch }: Command & { do: 'check' }): Promise<void> {
  const client_id = clientIds[device] ?? ''
  const version = versions[place.release] ?? ''
  const answer = await world.service.client().checkPatch({
    body: {
      app_id: world.appId,
      channel: 'stable',
      release_version: version,
      platform: place.platform,
      arch: place.arch,
      client_id,
      ...patch,
    },
  })
  const rolledBack = findRolledBack(world, version)
  expect(answer.rolled_back_patch_numbers ?? []).toEqual(rolledBack)
  const said = patch.current_patch_number === undefined ? patch.patch_number : (patch.current_patch_number ?? 0)
  world.requests.push({
    ...describe(world, device, place),
    kind: 'check',
    running: said ?? null,
    rolledBack,
  })
}

async function report(world: World, command: Command & { do: 'event' }): Promise<void> {
  const { device, place, type, patch, agoMs, times } = command
  const version = versions[place.release] ?? ''
  const timestamp = Math.floor((world.clock.nowMs - agoMs) / 1000)
  const event = {
    app_id: world.appId,
    client_id: clientIds[device] ?? '',
    release_version: version,
    platform: place.platform,
    arch: place.arch,
    type,
    patch_number: patch,
    timestamp,
    message: null,
  }
  for (let time = 0; time < times; time += 1) {
    await world.service.client().createPatchEvent({ body: { event } })
    world.requests.push({
      ...describe(world, device, place),
      kind: 'event',
      toldMs: timestamp * 1000,
      type,
      patch,
      rolledBack: findRolledBack(world, version),
    })
  }
}

async function importLines(world: World, { lines, withFileBefore }: Command & { do: 'import' }): Promise<void> {
  const file = writeFile(world, lines)
  const before = withFileBefore ? world.fileBefore : { text: '', requests: [] }
  const sent = { text: before.text + file.text, requests: [...before.requests, ...file.requests] }
  const answer = await world.api.importActivity({ params: { appId: world.appId }, body: sent.text })
  const good = sent.requests.filter((request) => request !== undefined)
  let accepted = 0
  for (const request of good) {
    const { receivedMs: _, ...line } = request
    const key = JSON.stringify(line)
    if (!world.importedLines.has(key)) accepted += 1
    world.importedLines.add(key)
  }
  const bad = sent.requests.flatMap((request, index) => (request === undefined ? [index + 1] : []))
  const { rejected, ...counts } = answer
  expect(rejected.map(({ line }) => line)).toEqual(bad)
  expect(counts).toEqual({ accepted, duplicates: good.length - accepted, rejected_count: bad.length })
  world.requests.push(...good)
  world.fileBefore = file
}

function writeFile(world: World, lines: ImportedLine[]): ImportedFile {
  const requests = lines.map((line): Request | undefined => {
    if ('bad' in line) return undefined
    return {
      ...describe(world, line.device, line.place),
      kind: 'import',
      toldMs: chooseImportedTime(world, line.time),
      running: line.patch ?? 0,
    }
  })
  const texts = lines.map((line, index) => {
    const request = requests[index]
    if ('bad' in line || request === undefined) return 'bad' in line ? line.bad : ''
    const { clientId: client_id, platform, arch, releaseVersion: release_version } = request
    const time = new Date(request.toldMs ?? 0).toISOString()
    return JSON.stringify({ client_id, platform, arch, release_version, patch_number: line.patch, time })
  })
  return { text: texts.map((text) => `${text}\n`).join(''), requests }
}

/**
 * Never the time of a check, which is odd, nor of an event, which is a whole second. Of two things at the same millisecond
 * the later one counts, and which one that is, nobody can tell when one was imported.
 */
function chooseImportedTime({ clock: { nowMs } }: World, time: ImportedTime): number {
  if ('hoursAgo' in time) return Math.floor(nowMs / hourMs - time.hoursAgo) * hourMs
  const timeMs = nowMs - time.agoMs
  const evenMs = timeMs - (timeMs % 2)
  return evenMs % 1000 === 0 ? evenMs + 2 : evenMs
}

async function roll(world: World, command: Command & { do: 'roll' }): Promise<void> {
  const release = world.releases[command.release]
  if (release === undefined) return
  const params = { appId: world.appId, releaseId: release.id, patchId: release.patchIds[command.patch - 1] ?? 0 }
  const { rolledBack } = release
  if (rolledBack.has(command.patch)) {
    await world.api.rollForwardPatch({ params })
    rolledBack.delete(command.patch)
  } else {
    await world.api.rollBackPatch({ params })
    rolledBack.add(command.patch)
  }
  const check = { app_id: world.appId, channel: 'stable', platform: 'android' as const, arch: 'aarch64' }
  const listTold = async () => {
    const answer = await world.service.client().checkPatch({ body: { ...check, release_version: release.version } })
    return answer.rolled_back_patch_numbers ?? []
  }
  // Without a client_id: it makes no observation.
  await expect.poll(listTold, { interval: 5, timeout: 10_000 }).toEqual(findRolledBack(world, release.version))
}

async function deleteDevice(world: World, { device }: Command & { do: 'delete' }): Promise<void> {
  const clientId = clientIds[device] ?? ''
  const isKnown = world.requests.some((request) => request.clientId === clientId)
  const deletion = world.api.deleteDevice({ params: { appId: world.appId, clientId } })
  if (isKnown) await deletion
  else await expect(deletion).rejects.toMatchObject({ status: 404 })
  world.requests = world.requests.filter((request) => request.clientId !== clientId)
}

function describe(world: World, device: number, { platform, arch, release }: Place) {
  const nothing = { toldMs: null, running: null, type: null, patch: null, rolledBack: [] }
  const { nowMs: receivedMs } = world.clock
  return {
    ...nothing,
    clientId: clientIds[device] ?? '',
    platform,
    arch,
    releaseVersion: versions[release] ?? '',
    receivedMs,
  }
}

function findRolledBack(world: World, version: string): number[] {
  const release = world.releases.find((candidate) => candidate.version === version)
  return [...(release?.rolledBack ?? [])].sort((a, b) => a - b)
}
