import type pg from 'pg'

type Owner = { app_id: string; version: string; patch: string | null; platform: string; arch: string }

/** What a blob belongs to, in the words of whoever has to mend it. */
export async function describeOwner(client: pg.Client, key: string): Promise<string> {
  const { rows } = await client.query<Owner>(
    `select app_id, version, null as patch, platform, arch
      from release_artifacts join releases on releases.id = release_id where blob_key = $1
    union all select app_id, version, number, platform, arch
      from patch_artifacts join patches on patches.id = patch_id join releases on releases.id = release_id where blob_key = $1`,
    [key],
  )
  if (rows[0] === undefined) return 'of what was deleted meanwhile'
  const { app_id: appId, version, patch, platform, arch } = rows[0]
  return `of app ${appId}, release ${version}${patch === null ? '' : `, patch ${patch}`}, ${platform} ${arch}`
}
