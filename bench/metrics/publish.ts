import { createHash } from 'node:crypto'
import type { ReleasePlatform } from '@godwit/contract'
import { type Client, createClient } from '@godwit/sdk'
import { places, releases } from './activity.ts'

/** Publishes the releases and patches that the devices run, through the API. Returns the app's id. */
export async function publishReleases(baseUrl: string, token: string): Promise<string> {
  const api = createClient({ baseUrl, token })
  const { appId, channelId } = await createBenchApp(api, 'Bench')
  for (const { value: planned } of releases) {
    const body = { version: planned.version, flutter_revision: 'deadbeef' }
    const { release } = await api.createRelease({ params: { appId }, body })
    for (let number = 1; number <= planned.patches; number += 1) {
      const builtFor = places.map(({ value }) => value)
      const patchId = await publishPatch(api, { appId, releaseId: release.id, channelId, places: builtFor })
      if (planned.rolledBack.includes(number)) {
        await api.rollBackPatch({ params: { appId, releaseId: release.id, patchId } })
      }
    }
  }
  return appId
}

export async function createBenchApp(api: Client, name: string): Promise<{ appId: string; channelId: number }> {
  const { organizations } = await api.listOrganizations()
  const organization_id = organizations[0]?.organization.id ?? 0
  const { id: appId } = await api.createApp({ body: { display_name: name, organization_id } })
  const channels = await api.listChannels({ params: { appId } })
  return { appId, channelId: channels.find((channel) => channel.name === 'stable')?.id ?? 0 }
}

export async function publishPatch(
  api: Client,
  input: {
    appId: string
    releaseId: number
    channelId: number
    places: { platform: ReleasePlatform; arch: string }[]
  },
): Promise<number> {
  const params = { appId: input.appId }
  const patch = await api.createPatch({ params, body: { release_id: input.releaseId } })
  for (const place of input.places) {
    const bytes = Buffer.from(`patch ${patch.id} ${place.platform} ${place.arch}`)
    const hash = createHash('sha256').update(bytes).digest('hex')
    const { url } = await api.createPatchArtifact({
      params: { ...params, patchId: patch.id },
      body: { ...place, hash, size: bytes.length },
    })
    const uploaded = await fetch(url, { method: 'POST', body: new Uint8Array(bytes) })
    if (!uploaded.ok) throw new Error(`the upload answered ${uploaded.status}`)
  }
  await api.promotePatch({ params, body: { patch_id: patch.id, channel_id: input.channelId } })
  return patch.id
}
