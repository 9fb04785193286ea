import { createHash, randomBytes } from 'node:crypto'
import type { ReleasePlatform } from '@godwit/contract'
import type { Client } from '@godwit/sdk'

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

export async function createTestApp(account: { api: Client; organizationId: number }, displayName = 'Atlas') {
  const app = await account.api.createApp({
    body: { display_name: displayName, organization_id: account.organizationId },
  })
  return app.id
}

export async function createTestRelease(api: Client, appId: string, version = '1.0.0+1') {
  const { release } = await api.createRelease({ params: { appId }, body: { version, flutter_revision: 'deadbeef' } })
  return release.id
}

type ReleaseArtifactOptions = { platform?: ReleasePlatform; arch?: string; bytes?: Buffer; canSideload?: boolean }

export async function registerTestReleaseArtifact(
  api: Client,
  params: { appId: string; releaseId: number },
  options: ReleaseArtifactOptions = {},
) {
  const { platform = 'android', arch = 'aab', bytes = randomBytes(1000), canSideload = true } = options
  const body = { platform, arch, hash: sha256(bytes), size: bytes.length, can_sideload: canSideload }
  return { bytes, artifact: await api.createReleaseArtifact({ params, body }) }
}

/** Registers an artifact and uploads its bytes. */
export async function uploadTestReleaseArtifact(
  api: Client,
  params: { appId: string; releaseId: number },
  options: ReleaseArtifactOptions = {},
) {
  const registered = await registerTestReleaseArtifact(api, params, options)
  await upload(registered.artifact.url, registered.bytes)
  return registered
}

export async function uploadTestPatchArtifact(
  api: Client,
  params: { appId: string; patchId: number },
  options: { platform?: ReleasePlatform; arch?: string; bytes?: Buffer; hash?: string } = {},
) {
  const { platform = 'android', arch = 'aarch64', bytes = randomBytes(500) } = options
  const hash = options.hash ?? sha256(randomBytes(8))
  const artifact = await api.createPatchArtifact({ params, body: { platform, arch, hash, size: bytes.length } })
  await upload(artifact.url, bytes)
  return { bytes, hash, artifact }
}

export async function upload(url: string, bytes: Buffer): Promise<void> {
  const response = await fetch(url, { method: 'POST', body: new Uint8Array(bytes) })
  if (response.status !== 200) throw new Error(`the upload answered ${response.status}: ${await response.text()}`)
}

export async function findChannelId(api: Client, appId: string, name = 'stable'): Promise<number> {
  const channels = await api.listChannels({ params: { appId } })
  const channel = channels.find((candidate) => candidate.name === name)
  if (channel === undefined) throw new Error(`there is no channel ${name}`)
  return channel.id
}
