import type { Client } from '@godwit/sdk'
import { createBenchApp, publishPatch } from '../metrics/publish.ts'
import { arch, patchesPerRelease, platforms, versions } from './fleet.ts'

export type SoakRelease = { id: number; version: string; patchIds: number[] }

/** An app whose releases have patches on `stable`, and a channel to move them away to. */
export async function publishSoakApp(api: Client) {
  const { appId, channelId: stableId } = await createBenchApp(api, 'Soak')
  const { id: betaId } = await api.createChannel({ params: { appId }, body: { channel: 'beta' } })
  const releases: SoakRelease[] = []
  for (const version of versions) {
    const body = { version, flutter_revision: 'deadbeef' }
    const { release } = await api.createRelease({ params: { appId }, body })
    const patchIds: number[] = []
    for (let number = 1; number <= patchesPerRelease; number += 1) {
      const places = platforms.map((platform) => ({ platform, arch }))
      patchIds.push(await publishPatch(api, { appId, releaseId: release.id, channelId: stableId, places }))
    }
    releases.push({ id: release.id, version, patchIds })
  }
  return { appId, stableId, betaId, releases }
}

export type SoakApp = Awaited<ReturnType<typeof publishSoakApp>>

/** What is offered changes with every step: patches are moved away and back, and every third time rolled back. */
export async function changeOffer(api: Client, { appId, stableId, betaId, releases }: SoakApp, step: number) {
  const params = { appId }
  for (const { id: releaseId, patchIds } of releases) {
    const patch_id = patchIds.at(-1) ?? 0
    const patch = { params: { appId, releaseId, patchId: patch_id } }
    switch (step % 6) {
      case 0:
      case 2:
        await api.promotePatch({ params, body: { patch_id, channel_id: betaId } })
        break
      case 1:
      case 3:
        await api.promotePatch({ params, body: { patch_id, channel_id: stableId } })
        break
      case 4:
        await api.rollBackPatch(patch)
        break
      case 5:
        await api.rollForwardPatch(patch)
        break
    }
  }
}
