import { createHash, randomBytes } from 'node:crypto'
import type { PatchCheckRequest } from '@godwit/contract'
import { type Client, createClient } from '@godwit/sdk'

const arches = ['aarch64', 'arm', 'x86_64']
const versions = ['1.0.0+1', '1.1.0+2', '1.2.0+3']
const patchesPerRelease = 3

/** Publishes an app through the API, as a team would: releases, patches, uploads, promotions, one roll back. */
export async function publishPatches(baseUrl: string, token: string): Promise<PatchCheckRequest> {
  const api = createClient({ baseUrl, token })
  const { organizations } = await api.listOrganizations()
  const organization_id = organizations[0]?.organization.id ?? 0
  const { id: appId } = await api.createApp({ body: { display_name: 'Bench', organization_id } })
  const channels = await api.listChannels({ params: { appId } })
  const channelId = channels[0]?.id ?? 0
  for (const version of versions) {
    const { release } = await api.createRelease({ params: { appId }, body: { version, flutter_revision: 'deadbeef' } })
    const patchIds: number[] = []
    for (let count = 0; count < patchesPerRelease; count += 1) {
      patchIds.push(await publishPatch(api, { appId, releaseId: release.id, channelId }))
    }
    const patchId = patchIds[0] ?? 0
    await api.rollBackPatch({ params: { appId, releaseId: release.id, patchId } })
  }
  return { app_id: appId, channel: 'stable', release_version: '1.1.0+2', platform: 'android', arch: 'aarch64' }
}

async function publishPatch(api: Client, input: { appId: string; releaseId: number; channelId: number }) {
  const { appId, releaseId, channelId } = input
  const params = { appId }
  const patch = await api.createPatch({ params, body: { release_id: releaseId } })
  for (const arch of arches) {
    const bytes = randomBytes(500)
    const hash = createHash('sha256').update(bytes).digest('hex')
    const { url } = await api.createPatchArtifact({
      params: { appId, patchId: patch.id },
      body: { platform: 'android', arch, hash, size: bytes.length },
    })
    const uploaded = await fetch(url, { method: 'POST', body: new Uint8Array(bytes) })
    if (!uploaded.ok) throw new Error(`the upload answered ${uploaded.status}`)
  }
  await api.promotePatch({ params, body: { patch_id: patch.id, channel_id: channelId } })
  return patch.id
}
