import type { PatchEvent, ReleasePlatform } from '@godwit/contract'
import { sql } from 'kysely'
import type { Db } from '../db/connection.ts'
import type { Patch, PatchArtifact } from './rules.ts'

export type AppVersion = { id: string; device_version: number }

export async function listAppVersions(db: Db): Promise<AppVersion[]> {
  return await db.selectFrom('apps').select(['id', 'device_version']).execute()
}

export type DeviceRelease = { version: string; patches: Patch[] }
export type DeviceApp = { device_version: number; releases: DeviceRelease[] }

/** All that devices of the app are answered from, in one statement: the version belongs to exactly this state. */
export async function findDeviceApp(db: Db, input: { appId: string }): Promise<DeviceApp | undefined> {
  const rows = await selectArtifacts(db, input)
  if (rows[0] === undefined) return undefined
  const releases = new Map<number, DeviceRelease>()
  const patches = new Map<number, Patch>()
  for (const row of rows) {
    if (row.release_id === null || row.version === null) continue
    let release = releases.get(row.release_id)
    if (release === undefined) {
      release = { version: row.version, patches: [] }
      releases.set(row.release_id, release)
    }
    if (row.patch_id === null || row.number === null || row.is_rolled_back === null) continue
    let patch = patches.get(row.patch_id)
    if (patch === undefined) {
      patch = { number: row.number, channel: row.channel, is_rolled_back: row.is_rolled_back, artifacts: [] }
      patches.set(row.patch_id, patch)
      release.patches.push(patch)
    }
    const artifact = toArtifact(row)
    if (artifact !== undefined) patch.artifacts.push(artifact)
  }
  return { device_version: rows[0].device_version, releases: [...releases.values()] }
}

type ArtifactRow = Awaited<ReturnType<typeof selectArtifacts>>[number]

/** One row per artifact, with nulls from the first thing that is missing. Patches that nothing depends on are left out. */
async function selectArtifacts(db: Db, input: { appId: string }) {
  return await db
    .selectFrom('apps')
    .leftJoin('releases', 'releases.app_id', 'apps.id')
    .leftJoin('patches', (join) =>
      join
        .onRef('patches.release_id', '=', 'releases.id')
        .on((eb) => eb.or([eb('patches.channel_id', 'is not', null), eb('patches.is_rolled_back', '=', true)])),
    )
    .leftJoin('channels', 'channels.id', 'patches.channel_id')
    .leftJoin('patch_artifacts as artifact', (join) =>
      join.onRef('artifact.patch_id', '=', 'patches.id').on('patches.is_rolled_back', '=', false),
    )
    .select([
      'apps.device_version',
      'releases.id as release_id',
      'releases.version',
      'patches.id as patch_id',
      'patches.number',
      'patches.is_rolled_back',
      'channels.name as channel',
      'artifact.platform',
      'artifact.arch',
      'artifact.hash',
      'artifact.hash_signature',
      'artifact.blob_key',
      sql<boolean>`artifact.uploaded_at is not null`.as('is_uploaded'),
    ])
    .where('apps.id', '=', input.appId)
    .execute()
}

function toArtifact(row: ArtifactRow): PatchArtifact | undefined {
  const { platform, arch, hash, hash_signature, blob_key, is_uploaded } = row
  if (platform === null || arch === null || hash === null || blob_key === null) return undefined
  return { platform, arch, hash, hash_signature, blob_key, is_uploaded }
}

/** An event, and when it was received first (Unix ms). */
export type ReceivedEvent = { event: PatchEvent; receivedMs: number }

/** An event that was not known before. Times in Unix ms. */
export type NewEvent = {
  app_id: string
  client_id: string
  release_version: string
  patch_number: number
  type: string
  platform: ReleasePlatform
  occurred_ms: number
  received_ms: number
}

/**
 * Stores each event once, and returns those that are new; those of an app that is gone, or is being deleted, are left out.
 * The apps are locked against deletion until the commit, so that no event outlives its app's removal; to wait for a
 * deletion instead would make every device of every app wait. In the order of the unique key, so that two instances that
 * are sent the same events cannot deadlock.
 */
export async function insertDeviceEvents(db: Db, received: ReceivedEvent[]): Promise<NewEvent[]> {
  const column = <Key extends keyof PatchEvent>(key: Key) => received.map(({ event }) => event[key] ?? null)
  const { rows } = await sql<NewEvent>`
    insert into device_events
      (app_id, client_id, release_version, patch_number, type, occurred_at, platform, arch, message, received_at)
    select app_id, client_id, release_version, patch_number, type, to_timestamp(occurred_at), platform, arch, message,
      to_timestamp(received_ms / 1000.0)
    from unnest(
      ${column('app_id')}::text[], ${column('client_id')}::text[], ${column('release_version')}::text[],
      ${column('patch_number')}::bigint[], ${column('type')}::text[], ${column('timestamp')}::bigint[],
      ${column('platform')}::text[], ${column('arch')}::text[], ${column('message')}::text[],
      ${received.map(({ receivedMs }) => receivedMs)}::bigint[]
    ) as event
      (app_id, client_id, release_version, patch_number, type, occurred_at, platform, arch, message, received_ms)
    join apps on apps.id = event.app_id
    order by app_id, client_id, release_version, patch_number, type, occurred_at, received_ms
    for key share of apps skip locked
    on conflict do nothing
    returning app_id, client_id, release_version, patch_number, type, platform,
      (extract(epoch from occurred_at) * 1000)::bigint as occurred_ms,
      (extract(epoch from received_at) * 1000)::bigint as received_ms`.execute(db)
  return rows
}

/** How many there were, at most `limit`. */
export async function deleteDeviceEvents(db: Db, input: { appId: string; limit: number }): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from device_events where id in (
      select id from device_events where app_id = ${input.appId} limit ${input.limit}
    )`.execute(db)
  return Number(numAffectedRows ?? 0n)
}
