import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ReleasePlatform } from '@godwit/contract'
import { ApiError, type Client } from '@godwit/sdk'
import type { Change, PatchState } from './answer-book.ts'
import { arch, platforms } from './devices.ts'
import { keyOfRelease, type Ledger, type LedgerRelease } from './ledger.ts'

export type PublishedApp = { appId: string; stableId: number; betaId: number }

const chunkBytes = 64 * 1024
const retryMs = 250

/** A team that publishes, and writes down what the service has acknowledged. Rejects as soon as one request fails. */
export function createPublisher({ api, ledger }: { api: Client; ledger: Ledger }) {
  /** Changes of which nobody knows whether they happened, and how to ask for them again. */
  const pending = new Map<string, { change: Change; ask: () => Promise<unknown> }>()

  const createApp = async (name: string): Promise<PublishedApp> => {
    const { organizations } = await api.listOrganizations()
    const organization_id = organizations[0]?.organization.id ?? 0
    const { id: appId } = await api.createApp({ body: { display_name: name, organization_id } })
    ledger.apps.set(appId, name)
    const channels = await api.listChannels({ params: { appId } })
    const stableId = channels.find((channel) => channel.name === 'stable')?.id ?? 0
    const { id: betaId } = await api.createChannel({ params: { appId }, body: { channel: 'beta' } })
    return { appId, stableId, betaId }
  }

  const createRelease = async ({ appId }: PublishedApp, version: string): Promise<LedgerRelease> => {
    const body = { version, flutter_revision: 'deadbeef' }
    const { release } = await api.createRelease({ params: { appId }, body })
    const entry = { key: keyOfRelease(appId, version), appId, releaseId: release.id, version }
    ledger.releases.set(entry.key, entry)
    return entry
  }

  /** Asks for a change of what devices are offered; the answer decides when they must be told. */
  const change = async (release: LedgerRelease, patches: PatchState[], ask: () => Promise<unknown>) => {
    const begun = ledger.answers.begin(release.key, patches, performance.now())
    try {
      await ask()
      begun.acknowledge(performance.now())
    } catch (error) {
      if (isRefused(error)) begun.refuse(performance.now())
      else pending.set(release.key, { change: begun, ask })
      throw error
    }
  }
  /** All that may be asked for twice is: afterwards it is known again what devices must be told. */
  const settle = async (key?: string) => {
    for (const [release, { change: begun, ask }] of [...pending]) {
      if (key !== undefined && release !== key) continue
      await ask()
      begun.acknowledge(performance.now())
      pending.delete(release)
    }
  }

  const publishPatch = async (app: PublishedApp, release: LedgerRelease): Promise<PatchState> => {
    await settle(release.key)
    const params = { appId: app.appId }
    const body = { release_id: release.releaseId, client_patch_id: randomUUID() }
    const { id, number } = await api.createPatch({ params, body })
    const patch: PatchState = { id, number, channel: null, isRolledBack: false, artifacts: [] }
    for (const platform of platforms) {
      const bytes = randomBytes(2000)
      const hash = hashOf(bytes)
      const artifact = { platform, arch, hash, size: bytes.length }
      const { url } = await api.createPatchArtifact({ params: { ...params, patchId: id }, body: artifact })
      await putWhole(url, bytes)
      patch.artifacts.push({ platform, arch, hash })
      ledger.patchBytes.set(hash, hash)
    }
    await promote(app, release, patch, 'stable')
    return patch
  }

  /** The patches of the release, with one of them as it is to be. */
  const withPatch = (release: LedgerRelease, patch: PatchState, wanted: Partial<PatchState>): PatchState[] => {
    const patches = ledger.answers.read(release.key)
    const known = patches.find(({ id }) => id === patch.id) ?? patch
    return [...patches.filter(({ id }) => id !== patch.id), { ...known, ...wanted }]
  }

  const promote = async (app: PublishedApp, release: LedgerRelease, patch: PatchState, channel: 'stable' | 'beta') => {
    await settle(release.key)
    const channel_id = channel === 'stable' ? app.stableId : app.betaId
    await change(release, withPatch(release, patch, { channel }), () =>
      api.promotePatch({ params: { appId: app.appId }, body: { patch_id: patch.id, channel_id } }),
    )
  }

  const setRolledBack = async (release: LedgerRelease, patch: PatchState, isRolledBack: boolean) => {
    await settle(release.key)
    const { appId, releaseId } = release
    const params = { appId, releaseId, patchId: patch.id }
    await change(release, withPatch(release, patch, { isRolledBack }), () =>
      isRolledBack ? api.rollBackPatch({ params }) : api.rollForwardPatch({ params }),
    )
  }

  /** In chunks, and for as long as it takes: what was acknowledged of it must still be there after any failure. */
  const uploadRelease = async (
    release: LedgerRelease,
    options: { sizeBytes: number; name?: string; platform?: ReleasePlatform; patienceMs?: number },
  ): Promise<void> => {
    const { sizeBytes, platform = 'android', name = `arch-${randomUUID().slice(0, 8)}`, patienceMs = 0 } = options
    const bytes = randomBytes(sizeBytes)
    const sha256 = hashOf(bytes)
    const body = { platform, arch: name, hash: sha256, size: sizeBytes, can_sideload: false }
    const { appId, releaseId } = release
    const { url } = await api.createReleaseArtifact({ params: { appId, releaseId }, body })
    await putInChunks(url, bytes, performance.now() + patienceMs)
    ledger.uploads.push({ ...release, platform, arch: name, sha256 })
  }

  return { createApp, createRelease, publishPatch, promote, setRolledBack, uploadRelease, settle }
}

export type Publisher = ReturnType<typeof createPublisher>

export function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** The service has decided against it. Anything else, an answer 503 too, leaves open whether it happened. */
function isRefused(error: unknown): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status < 500
}

async function putWhole(url: string, bytes: Buffer): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    body: new Uint8Array(bytes),
    signal: AbortSignal.timeout(20_000),
  })
  await response.arrayBuffer()
  if (response.status !== 200) throw new Error(`the upload answered ${response.status}`)
}

async function putInChunks(url: string, bytes: Buffer, deadlineMs: number): Promise<void> {
  let acknowledged = 0
  for (;;) {
    try {
      const stored = await putChunk(url, bytes, acknowledged)
      if (stored < acknowledged)
        throw new LostBytesError(`${acknowledged} bytes were acknowledged, ${stored} are there`)
      acknowledged = stored
      if (acknowledged === bytes.length) return
    } catch (error) {
      if (error instanceof LostBytesError || performance.now() > deadlineMs) throw error
      await sleep(retryMs)
      // What arrived of the chunk whose answer was lost may count: only the service knows.
      acknowledged = Math.max(acknowledged, await askStored(url, bytes.length).catch(() => acknowledged))
      if (acknowledged === bytes.length) return
    }
  }
}

/** Bytes that the service had acknowledged are gone. */
export class LostBytesError extends Error {}

async function putChunk(url: string, bytes: Buffer, from: number): Promise<number> {
  const to = Math.min(from + chunkBytes, bytes.length)
  const range = `bytes ${from}-${to - 1}/${bytes.length}`
  return await put(url, bytes.length, { body: new Uint8Array(bytes.subarray(from, to)), range })
}

async function askStored(url: string, sizeBytes: number): Promise<number> {
  return await put(url, sizeBytes, { range: `bytes */${sizeBytes}` })
}

/** How many bytes are stored. */
async function put(url: string, sizeBytes: number, part: { body?: Uint8Array<ArrayBuffer>; range: string }) {
  const response = await fetch(url, {
    method: 'PUT',
    ...(part.body === undefined ? {} : { body: part.body }),
    headers: { 'content-range': part.range },
    signal: AbortSignal.timeout(20_000),
  })
  await response.arrayBuffer()
  if (response.status === 200) return sizeBytes
  if (response.status !== 308) throw new Error(`the upload answered ${response.status}`)
  return Number(/bytes=0-(\d+)/.exec(response.headers.get('range') ?? '')?.[1] ?? -1) + 1
}
