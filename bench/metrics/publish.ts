import { createHash } from 'node:crypto'
import { createClient } from '@godwit/sdk'
import { places, releases } from './activity.ts'

/** Publishes the releases and patches that the devices run, through the API. Returns the app's id. */
export async function publishReleases(baseUrl: string, token: string): Promise<string> {
  const api = createClient({ baseUrl, token })
  const { organizations } = await api.listOrganizations()
  const organization_id = organizations[0]?.organization.id ?? 0
  const { id: appId } = await api.createApp({ body: { display_name: 'Bench', organization_id } })
  const [channel] = await api.listChannels({ params: { appId } })
  for (const { value: planned } of releases) {
    const body = { version: planned.version, flutter_revision: 'deadbeef' }
    const { release } = await api.createRelease({ params: { appId }, body })
    for (let number = 1; number <= planned.patches; number += 1) {
      const patch = await api.createPatch({ params: { appId }, body: { release_id: release.id } })
      for (const { value: place } of places) {
        const bytes = Buffer.from(`${planned.version} ${number} ${place.arch}`)
        const hash = createHash('sha256').update(bytes).digest('hex')
        const { url } = await api.createPatchArtifact({
          params: { appId, patchId: patch.id },
          body: { ...place, hash, size: bytes.length },
        })
        const uploaded = await fetch(url, { method: 'POST', body: new Uint8Array(bytes) })
        if (!uploaded.ok) throw new Error(`the upload answered ${uploaded.status}`)
      }
      await api.promotePatch({ params: { appId }, body: { patch_id: patch.id, channel_id: channel?.id ?? 0 } })
      if (planned.rolledBack.includes(number)) {
        await api.rollBackPatch({ params: { appId, releaseId: release.id, patchId: patch.id } })
      }
    }
  }
  return appId
}
