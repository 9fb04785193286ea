import { sql } from 'kysely'
import type { Db } from '../../db/connection.ts'
import type { BitmapKey, EventCount } from './apply-observations.ts'
import type { UnitKind, UnitRow } from './bitmap-units.ts'
import { readBinaryRows, readInt4, readInt8 } from './bulk-reads.ts'
import type { Installs } from './install-states.ts'
import { tableOf } from './partitions.ts'

/** Values of one statement stay below the 65,535 parameters that the protocol has. */
const rowsPerInsert = 1000
const devicesPerStatement = 10_000

/** One parameter, however many there are. */
function anyOf(timesMs: number[]) {
  return sql<Date>`any(${timesMs.map((ms) => new Date(ms))}::timestamptz[])`
}

export type AppRow = {
  id: number
  app_id: string
  seq: number
  epoch: number
  device_count: number
  first_ms: number | null
}

/** Apps that have segments, those whose segments wait longest first. */
export async function listAppsWithSegments(db: Db): Promise<{ app_id: string; oldest: Date }[]> {
  const { rows } = await sql<{ app_id: string; oldest: Date }>`
    select app_id, min(created_at) as oldest from activity_segments group by app_id order by min(id)`.execute(db)
  return rows
}

/** undefined when there are none. */
export async function findLastSegmentId(db: Db, input: { appId: string }): Promise<number | undefined> {
  const { rows } = await sql<{ id: number | null }>`
    select max(id) as id from activity_segments where app_id = ${input.appId}`.execute(db)
  return rows[0]?.id ?? undefined
}

export async function appExists(db: Db, input: { appId: string }): Promise<boolean> {
  const row = await db.selectFrom('apps').select('id').where('id', '=', input.appId).executeTakeFirst()
  return row !== undefined
}

/** Makes the row of an app on which everything else hangs. Not of one that is gone or going. */
export async function insertApp(db: Db, input: { appId: string }): Promise<void> {
  await sql`
    insert into activity_apps (app_id) select id from apps where id = ${input.appId} for key share
    on conflict do nothing`.execute(db)
}

/** Which of the versions are releases of the app. */
export async function listExistingReleases(db: Db, input: { appId: string; versions: string[] }): Promise<string[]> {
  const { rows } = await sql<{ version: string }>`
    select version from releases where app_id = ${input.appId} and version = any(${input.versions}::text[])`.execute(db)
  return rows.map(({ version }) => version)
}

export async function findApp(db: Db, input: { appId: string }): Promise<AppRow | undefined> {
  return await db.selectFrom('activity_apps').selectAll().where('app_id', '=', input.appId).executeTakeFirst()
}

/** The same app after no fewer changes. undefined: not there yet, or the server is no standby any more. */
export async function findAppOnStandby(
  db: Db,
  needed: Pick<AppRow, 'id' | 'epoch' | 'seq'>,
): Promise<AppRow | undefined> {
  return await db
    .selectFrom('activity_apps')
    .selectAll()
    .where('id', '=', needed.id)
    .where('epoch', '>=', needed.epoch)
    .where('seq', '>=', needed.seq)
    .where(sql<boolean>`pg_is_in_recovery()`)
    .executeTakeFirst()
}

/**
 * Whoever holds this lock may change what is recorded of the app. undefined: there is no such row, or with `skipLocked`
 * somebody else holds it.
 */
export async function lockApp(db: Db, input: { appId: string; skipLocked?: boolean }): Promise<AppRow | undefined> {
  return await db
    .selectFrom('activity_apps')
    .selectAll()
    .where('app_id', '=', input.appId)
    .forUpdate()
    .$if(input.skipLocked === true, (query) => query.skipLocked())
    .executeTakeFirst()
}

export async function updateApp(
  db: Db,
  input: { app: number; seq: number; epoch: number; deviceCount: number; firstMs: number | null },
): Promise<void> {
  const { app, seq, epoch, deviceCount, firstMs } = input
  await db
    .updateTable('activity_apps')
    .set({ seq, epoch, device_count: deviceCount, first_ms: firstMs })
    .where('id', '=', app)
    .execute()
}

/** The oldest segments of an app, in their order: at most `limit`, and no more once they have `sizeBytes` together. */
export async function listSegments(
  db: Db,
  input: { appId: string; limit: number; sizeBytes: number },
): Promise<{ id: number; observations: Buffer }[]> {
  const { rows } = await sql<{ id: number; observations: Buffer }>`
    select id, observations from (
      select id, observations, sum(octet_length(observations)) over (order by id) as bytes
      from activity_segments where app_id = ${input.appId} order by id limit ${input.limit}
    ) segment where bytes - octet_length(observations) < ${input.sizeBytes} order by id`.execute(db)
  return rows
}

export async function deleteSegments(db: Db, input: { ids: number[] }): Promise<void> {
  await sql`delete from activity_segments where id = any(${input.ids}::bigint[])`.execute(db)
}

export async function deleteSegmentsOfApp(db: Db, input: { appId: string }): Promise<void> {
  await db.deleteFrom('activity_segments').where('app_id', '=', input.appId).execute()
}

export async function listDevices(
  db: Db,
  input: { app: number; clients: string[] },
): Promise<{ client: string; number: number }[]> {
  const found: { client: string; number: number }[] = []
  for (let from = 0; from < input.clients.length; from += devicesPerStatement) {
    const clients = input.clients.slice(from, from + devicesPerStatement)
    const { rows } = await sql<{ client: string; number: number }>`
      select client, number from activity_devices
      where app = ${input.app} and client = any(${clients}::uuid[])`.execute(db)
    found.push(...rows)
  }
  return found
}

export async function insertDevices(
  db: Db,
  input: { app: number; clients: string[]; firstNumber: number },
): Promise<void> {
  for (let from = 0; from < input.clients.length; from += devicesPerStatement) {
    const clients = input.clients.slice(from, from + devicesPerStatement)
    await sql`
      insert into activity_devices (app, client, number)
      select ${input.app}, client, ${input.firstNumber + from - 1}::integer + position
      from unnest(${clients}::uuid[]) with ordinality as device (client, position)`.execute(db)
  }
}

export type PartRow = { startMs: number; key: BitmapKey; devices: Buffer }

export async function insertParts(
  db: Db,
  input: { app: number; kind: UnitKind; seq: number; parts: PartRow[] },
): Promise<void> {
  const { app, kind, seq, parts } = input
  for (let from = 0; from < parts.length; from += rowsPerInsert) {
    const rows = parts.slice(from, from + rowsPerInsert).map(({ startMs, key, devices }) => ({
      app,
      start: new Date(startMs),
      release_version: key.release,
      patch_number: key.patch,
      platform: key.platform,
      seq,
      devices,
    }))
    await db.insertInto(tableOf[kind]).values(rows).execute()
  }
}

/** The parts of the units that begin at the given times. */
export async function listParts(
  db: Db,
  input: { app: number; kind: UnitKind; startsMs: number[] },
): Promise<UnitRow[]> {
  const starts = sql.join(input.startsMs.map((ms) => sql.lit(new Date(ms).toISOString())))
  const rows = await readBinaryRows(
    db,
    sql`select (extract(epoch from start) * 1000)::bigint, release_version, patch_number, platform, devices
      from ${sql.table(tableOf[input.kind])} where app = ${sql.lit(input.app)} and start in (${starts})`,
  )
  return rows.map(([startMs, release, patch, platform, devices]) => ({
    startMs: readInt8(startMs),
    release_version: release?.toString() ?? null,
    patch_number: readInt8(patch),
    platform: platform?.toString() ?? '',
    devices: devices ?? Buffer.alloc(0),
  }))
}

export async function deleteParts(db: Db, input: { app: number; kind: UnitKind; startMs: number }): Promise<void> {
  await db
    .deleteFrom(tableOf[input.kind])
    .where('app', '=', input.app)
    .where('start', '=', new Date(input.startMs))
    .execute()
}

/** When the units begin that have changed after `afterSeq`. */
export async function listChangedUnits(
  db: Db,
  input: { app: number; kind: UnitKind; afterSeq: number },
): Promise<number[]> {
  const rows = await db
    .selectFrom(tableOf[input.kind])
    .select('start')
    .distinct()
    .where('app', '=', input.app)
    .where('seq', '>', input.afterSeq)
    .execute()
  return rows.map(({ start }) => start.getTime())
}

/** Units of more than one part a key, those with most parts first. */
export async function listUnitsInParts(
  db: Db,
  input: { app: number; kind: UnitKind; beforeMs: number; minParts: number },
): Promise<{ startMs: number; parts: number }[]> {
  const { rows } = await sql<{ start: Date; parts: number }>`
    select start, max(parts) as parts from (
      select start, count(*) as parts from ${sql.table(tableOf[input.kind])}
      where app = ${input.app} and start < ${new Date(input.beforeMs)}
      group by start, release_version, patch_number, platform
    ) key group by start having max(parts) >= ${input.minParts} order by 2 desc, 1`.execute(db)
  return rows.map(({ start, parts }) => ({ startMs: start.getTime(), parts }))
}

/** When the units of an app begin, oldest first. */
export async function listUnits(db: Db, input: { app: number; kind: UnitKind }): Promise<number[]> {
  const rows = await db
    .selectFrom(tableOf[input.kind])
    .select('start')
    .distinct()
    .where('app', '=', input.app)
    .orderBy('start')
    .execute()
  return rows.map(({ start }) => start.getTime())
}

export async function listChunks(
  db: Db,
  input: { app: number; afterSeq: number; fromChunk: number; limit: number },
): Promise<{ chunk: number; data: Buffer }[]> {
  const { app, afterSeq, fromChunk, limit } = input
  const rows = await readBinaryRows(
    db,
    sql`select chunk, data from activity_device_chunks
      where app = ${sql.lit(app)} and seq > ${sql.lit(afterSeq)} and chunk >= ${sql.lit(fromChunk)}
      order by chunk limit ${sql.lit(limit)}`,
  )
  return rows.map(([chunk, data]) => ({ chunk: readInt4(chunk), data: data ?? Buffer.alloc(0) }))
}

/** Up to which change each chunk is stored. */
export async function listChunkSeqs(db: Db, input: { app: number }): Promise<{ chunk: number; seq: number }[]> {
  return await db
    .selectFrom('activity_device_chunks')
    .select(['chunk', 'seq'])
    .where('app', '=', input.app)
    .orderBy('chunk')
    .execute()
}

export async function upsertChunk(
  db: Db,
  input: { app: number; chunk: number; seq: number; data: Buffer },
): Promise<void> {
  const { seq, data } = input
  await db
    .insertInto('activity_device_chunks')
    .values(input)
    .onConflict((conflict) => conflict.columns(['app', 'chunk']).doUpdateSet({ seq, data }))
    .execute()
}

export async function listDeviceChanges(
  db: Db,
  input: { app: number; afterSeq: number; limit: number },
): Promise<{ seq: number; data: Buffer }[]> {
  const { app, afterSeq, limit } = input
  const rows = await readBinaryRows(
    db,
    sql`select seq, data from activity_device_changes
      where app = ${sql.lit(app)} and seq > ${sql.lit(afterSeq)} order by seq limit ${sql.lit(limit)}`,
  )
  return rows.map(([seq, data]) => ({ seq: readInt8(seq), data: data ?? Buffer.alloc(0) }))
}

export async function insertDeviceChange(db: Db, input: { app: number; seq: number; data: Buffer }): Promise<void> {
  await db.insertInto('activity_device_changes').values(input).execute()
}

export async function deleteDeviceChanges(db: Db, input: { app: number; toSeq: number }): Promise<void> {
  await db.deleteFrom('activity_device_changes').where('app', '=', input.app).where('seq', '<=', input.toSeq).execute()
}

export async function listReleases(db: Db, input: { app: number; fromNumber: number }): Promise<string[]> {
  const rows = await db
    .selectFrom('activity_releases')
    .select('version')
    .where('app', '=', input.app)
    .where('number', '>=', input.fromNumber)
    .orderBy('number')
    .execute()
  return rows.map(({ version }) => version)
}

export async function insertReleases(
  db: Db,
  input: { app: number; fromNumber: number; versions: string[] },
): Promise<void> {
  const { app, fromNumber, versions } = input
  await sql`
    insert into activity_releases (app, number, version)
    select ${app}, ${fromNumber - 1}::integer + position, version
    from unnest(${versions}::text[]) with ordinality as release (version, position)`.execute(db)
}

export async function listInstallStates(
  db: Db,
  input: { app: number; fromNumber: number; limit: number },
): Promise<Installs[]> {
  const rows = await db
    .selectFrom('activity_install_states')
    .select('installs')
    .where('app', '=', input.app)
    .where('number', '>=', input.fromNumber)
    .orderBy('number')
    .limit(input.limit)
    .execute()
  return rows.map(({ installs }) => installs)
}

export async function insertInstallStates(
  db: Db,
  input: { app: number; fromNumber: number; states: Installs[] },
): Promise<void> {
  const { app, fromNumber, states } = input
  await sql`
    insert into activity_install_states (app, number, installs)
    select ${app}, ${fromNumber - 1}::integer + position, installs::jsonb
    from unnest(${states.map((installs) => JSON.stringify(installs))}::text[])
      with ordinality as state (installs, position)`.execute(db)
}

export async function addEventCounts(db: Db, input: { app: number; counts: EventCount[] }): Promise<void> {
  const { app, counts } = input
  const column = <Key extends keyof EventCount>(key: Key) => counts.map((count) => count[key])
  await sql`
    insert into activity_event_counts as known (app, start, release_version, patch_number, type, count)
    select ${app}, to_timestamp(start_ms / 1000), release, patch, type, count
    from unnest(
      ${column('startMs')}::double precision[], ${column('release')}::text[], ${column('patch')}::bigint[],
      ${column('type')}::text[], ${column('count')}::bigint[]
    ) as counted (start_ms, release, patch, type, count)
    on conflict (app, start, release_version, patch_number, type)
    do update set count = known.count + excluded.count`.execute(db)
}

export async function listRemovedDevices(db: Db, input: { app: number }): Promise<number[]> {
  const rows = await db.selectFrom('activity_removed_devices').select('number').where('app', '=', input.app).execute()
  return rows.map(({ number }) => number)
}

export async function listHourTotals(
  db: Db,
  input: { app: number; fromMs: number; toMs: number },
): Promise<{ startMs: number; devices: number }[]> {
  const rows = await db
    .selectFrom('activity_hour_totals')
    .select(['start', 'devices'])
    .where('app', '=', input.app)
    .where('start', '>=', new Date(input.fromMs))
    .where('start', '<', new Date(input.toMs))
    .execute()
  return rows.map(({ start, devices }) => ({ startMs: start.getTime(), devices }))
}

export async function insertHourTotals(
  db: Db,
  input: { app: number; totals: { startMs: number; devices: number }[] },
): Promise<void> {
  if (input.totals.length === 0) return
  await db
    .insertInto('activity_hour_totals')
    .values(input.totals.map(({ startMs, devices }) => ({ app: input.app, start: new Date(startMs), devices })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export async function deleteHourTotals(db: Db, input: { app: number; startsMs: number[] }): Promise<void> {
  await db
    .deleteFrom('activity_hour_totals')
    .where('app', '=', input.app)
    .where('start', '=', anyOf(input.startsMs))
    .execute()
}

/** Hours that are over and whose devices are not counted. */
export async function listUncountedHours(
  db: Db,
  input: { app: number; fromMs: number; toMs: number },
): Promise<number[]> {
  const { rows } = await sql<{ start: Date }>`
    select distinct start from activity_hours unit
    where app = ${input.app} and start >= ${new Date(input.fromMs)} and start < ${new Date(input.toMs)}
    and not exists (select from activity_hour_totals total where total.app = unit.app and total.start = unit.start)
    order by start`.execute(db)
  return rows.map(({ start }) => start.getTime())
}

export async function insertRemovedDevice(db: Db, input: { app: number; number: number }): Promise<void> {
  await db.insertInto('activity_removed_devices').values(input).execute()
}

export async function deleteRemovedDevices(db: Db, input: { app: number; numbers: number[] }): Promise<void> {
  await sql`
    delete from activity_removed_devices
    where app = ${input.app} and number = any(${input.numbers}::integer[])`.execute(db)
}

export async function deleteDevice(db: Db, input: { app: number; client: string }): Promise<void> {
  await db.deleteFrom('activity_devices').where('app', '=', input.app).where('client', '=', input.client).execute()
}

export async function deleteAllHourTotals(db: Db, input: { app: number }): Promise<void> {
  await db.deleteFrom('activity_hour_totals').where('app', '=', input.app).execute()
}

/** What a device has reported, as it was counted. */
export async function deleteEventsOfDevice(db: Db, input: { appId: string; clientId: string }): Promise<EventCount[]> {
  const { rows } = await sql<{ start: Date; release: string; patch: number; type: string; count: number }>`
    with gone as (
      delete from device_events where app_id = ${input.appId} and client_id = ${input.clientId}
      returning received_at, release_version, patch_number, type
    )
    select date_trunc('hour', received_at, 'UTC') as start, release_version as release, patch_number as patch, type,
      count(*) as count
    from gone group by 1, 2, 3, 4`.execute(db)
  return rows.map(({ start, ...counted }) => ({ startMs: start.getTime(), ...counted }))
}

export async function subtractEventCounts(db: Db, input: { app: number; counts: EventCount[] }): Promise<void> {
  const { app, counts } = input
  const column = <Key extends keyof EventCount>(key: Key) => counts.map((count) => count[key])
  await sql`
    update activity_event_counts known set count = known.count - counted.count
    from unnest(
      ${column('startMs')}::double precision[], ${column('release')}::text[], ${column('patch')}::bigint[],
      ${column('type')}::text[], ${column('count')}::bigint[]
    ) as counted (start_ms, release, patch, type, count)
    where known.app = ${app} and known.start = to_timestamp(counted.start_ms / 1000)
    and known.release_version = counted.release and known.patch_number = counted.patch
    and known.type = counted.type`.execute(db)
  await db.deleteFrom('activity_event_counts').where('app', '=', app).where('count', '=', 0).execute()
}

export async function findImportMarks(db: Db, input: { app: number; startMs: number }): Promise<Buffer | undefined> {
  const start = sql.lit(new Date(input.startMs).toISOString())
  const [row] = await readBinaryRows(
    db,
    sql`select marks from activity_import_marks where app = ${sql.lit(input.app)} and start = ${start}`,
  )
  return row?.[0] ?? undefined
}

export async function upsertImportMarks(
  db: Db,
  input: { app: number; startMs: number; marks: Buffer; now: Date },
): Promise<void> {
  const { app, startMs, marks, now } = input
  await db
    .insertInto('activity_import_marks')
    .values({ app, start: new Date(startMs), marks, updated_at: now })
    .onConflict((conflict) => conflict.columns(['app', 'start']).doUpdateSet({ marks, updated_at: now }))
    .execute()
}

export async function deleteOldImportMarks(db: Db, input: { before: Date }): Promise<void> {
  await db.deleteFrom('activity_import_marks').where('updated_at', '<', input.before).execute()
}

export async function deleteOldCounts(db: Db, input: { hoursBefore: Date; countsBefore: Date }): Promise<void> {
  await db.deleteFrom('activity_hour_totals').where('start', '<', input.hoursBefore).execute()
  await db.deleteFrom('activity_event_counts').where('start', '<', input.countsBefore).execute()
}

/** The tables that have rows of an app by its number, with how many to remove at once: rows of bitmaps are large. */
const tablesOfApp = {
  activity_devices: 5000,
  activity_removed_devices: 5000,
  activity_device_chunks: 20,
  activity_device_changes: 100,
  activity_releases: 5000,
  activity_install_states: 5000,
  activity_hours: 200,
  activity_days: 50,
  activity_hour_totals: 5000,
  activity_event_counts: 5000,
  activity_import_marks: 50,
} as const

/** Removes some of what is recorded of an app. Returns how many rows it was. */
export async function deleteRowsOfApp(db: Db, input: { app: number }): Promise<number> {
  let deleted = 0
  for (const [table, limit] of Object.entries(tablesOfApp)) {
    const { numAffectedRows } = await sql`
      delete from ${sql.table(table)} where (tableoid, ctid) in (
        select tableoid, ctid from ${sql.table(table)} where app = ${input.app} limit ${limit}
      )`.execute(db)
    deleted += Number(numAffectedRows ?? 0n)
  }
  return deleted
}

export async function deleteApp(db: Db, input: { app: number }): Promise<void> {
  await db.deleteFrom('activity_apps').where('id', '=', input.app).execute()
}

/** Apps of which devices were removed that bitmaps may still hold. */
export async function listAppsWithRemovedDevices(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('activity_apps')
    .innerJoin('activity_removed_devices as removed', 'removed.app', 'activity_apps.id')
    .select('app_id')
    .distinct()
    .execute()
  return rows.map(({ app_id }) => app_id)
}

/** Forgets which frames writers have committed that were last heard of before: nobody has theirs any more. */
export async function deleteOldWriters(db: Db, input: { before: Date }): Promise<void> {
  await db.deleteFrom('activity_writers').where('updated_at', '<', input.before).execute()
}
