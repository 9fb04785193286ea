import type { Client } from '@godwit/sdk'
import type { Truth } from './fleet.ts'
import type { SoakApp } from './publish.ts'

export type Comparison = { what: string; sent: number; counted: number }

/** What the devices have done, beside what the server says that they have. */
export async function compareCounts(api: Client, { appId, releases }: SoakApp, truth: Truth): Promise<Comparison[]> {
  const params = { appId }
  const rows: Comparison[] = []
  const add = (what: string, sent: number | undefined, counted: number | undefined) =>
    rows.push({ what, sent: sent ?? 0, counted: counted ?? 0 })

  const unique = await api.getUniqueUsers({ params, query: { group_by: 'platform' } })
  add('devices', truth.devices, unique.unique_users)
  add('new devices', truth.devices, (await api.getNewDevices({ params })).current)
  for (const [platform, devices] of Object.entries(truth.byPlatform)) {
    const group = unique.breakdown?.find(({ group_value }) => group_value === platform)
    add(`devices, ${platform}`, devices, group?.unique_users)
  }
  const { entries } = await api.getVersionDistribution({ params })
  for (const [version, devices] of Object.entries(truth.byVersion)) {
    add(`last on ${version}`, devices, entries.find((entry) => entry.release_version === version)?.device_count)
  }
  for (const { id: releaseId, version } of releases) {
    const adoption = await api.getPatchAdoption({ params, query: { release_version: version } })
    const grouped = { params: { appId, releaseId }, query: { group_by: 'patch' as const } }
    const installs = await api.getReleasePatchInstalls(grouped)
    const downloads = await api.getReleasePatchDownloads(grouped)
    for (const { patch_number, series } of adoption.patches) {
      const find = (groups: { group_value: string; count: number }[] | undefined) =>
        groups?.find(({ group_value }) => group_value === String(patch_number))?.count
      const name = `${version}, patch ${patch_number}`
      const [index, [point]] = [patch_number - 1, series]
      add(`${name}: target`, truth.seenOn[version], point?.target)
      add(`${name} or higher`, truth.adoption[version]?.[index], point?.devices)
      add(`${name}: installs`, truth.installs[version]?.[index], find(installs.breakdown))
      add(`${name}: downloads`, truth.downloads[version]?.[index], find(downloads.breakdown))
    }
  }
  return rows
}
