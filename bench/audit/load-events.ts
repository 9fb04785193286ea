import { auditEventNames } from '@godwit/contract'
import { sql } from 'kysely'
import type { Db } from '../../apps/server/src/db/connection.ts'
import { createPartition, partitionOf } from '../../apps/server/src/db/month-partitions.ts'
import { monthOf } from '../../apps/server/src/time.ts'

export const months = 13
const apps = 20
const actors = 200

/** What a filter may name, from the most to the least frequent. */
export type LoadedLog = { organizationId: number; start: Date; end: Date; appIds: string[]; actorIds: string[] }

/**
 * Fills one organization's log in the database, without the service: some actors, apps and operations are in most events,
 * others in hardly any. The chain is not linked; reading does not look at it.
 */
export async function loadEvents(
  db: Db,
  input: { organizationId: number; events: number; now: Date },
): Promise<LoadedLog> {
  const { organizationId, events, now } = input
  const thisMonth = monthOf(now).start
  const starts = Array.from({ length: months }, (_, back) => addMonths(thisMonth, back + 1 - months))
  const firstUserId = await insertActors(db)
  const indexes = await dropIndexes(db)
  const perMonth = Math.ceil(events / months)
  for (const [index, start] of starts.entries()) {
    const month = partitionOf('audit_events', start)
    await createPartition(db, month)
    const end = month.end < now ? month.end : now
    const [from, count] = [index * perMonth + 1, Math.min(perMonth, events - index * perMonth)]
    await insertMonth(db, { organizationId, from, count, firstUserId, start, end })
  }
  for (const definition of indexes) await sql.raw(definition).execute(db)
  await insertChainEnd(db, { organizationId, events, now })
  await sql`vacuum analyze audit_events`.execute(db)
  return {
    organizationId,
    start: starts[0] ?? now,
    end: now,
    appIds: Array.from({ length: apps }, (_, app) => nameApp(app)),
    actorIds: Array.from({ length: actors }, (_, actor) => String(firstUserId + actor)),
  }
}

function addMonths(time: Date, count: number): Date {
  return new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + count))
}

function nameApp(app: number): string {
  return `8f4c1d20-0000-4000-8000-${String(app).padStart(12, '0')}`
}

async function insertActors(db: Db): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into users (email, display_name, jwt_issuer)
    select 'actor-' || n || '@example.com', 'Actor ' || n, 'https://bench.example.com' from generate_series(1, ${actors}) n
    returning id`.execute(db)
  return Math.min(...rows.map(({ id }) => id))
}

/** They are made again at the end, which is faster than to keep them up to date. */
async function dropIndexes(db: Db): Promise<string[]> {
  const { rows } = await sql<{ name: string; definition: string }>`
    select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index
    where indrelid = 'audit_events'::regclass and not indisprimary`.execute(db)
  for (const { name } of rows) await sql.raw(`drop index ${name}`).execute(db)
  return rows.map(({ definition }) => definition.replace(' ON ONLY ', ' ON '))
}

async function insertMonth(
  db: Db,
  input: { organizationId: number; from: number; count: number; firstUserId: number; start: Date; end: Date },
): Promise<void> {
  const { organizationId, from, count, firstUserId, start, end } = input
  const stepMs = (end.getTime() - start.getTime()) / count
  // Powers of a random number make the first of each kind frequent and the last one rare.
  await sql`
    insert into audit_events (organization_id, seq, event_time, operation, app_id, actor_id, event, hash)
    select ${organizationId}::bigint, seq, at, operation, app_id, actor_id,
      '{"class_uid":6003,"category_uid":6,"activity_id":3,"type_uid":600303,"time":' || (extract(epoch from at) * 1000)::bigint
      || ',"severity_id":1,"status_id":1,"metadata":{"version":"1.9.0","product":{"name":"Godwit","vendor_name":"Godwit"},"uid":"'
      || uid || '","tenant_uid":"' || ${organizationId}::bigint || '","log_name":"audit"},"api":{"operation":"' || operation
      || '","token":{"uid":"17","name":"release pipeline"}},"actor":{"user":{"uid":"' || actor_id
      || '","name":"Somebody Ordinary","email_addr":"somebody.ordinary@example.com","type_id":1}},"src_endpoint":{"ip":"203.0.113.77"},"http_request":{"user_agent":"Dart/3.9 (dart:io)"},"resources":[{"type":"patch","uid":"'
      || seq || '"},{"type":"app","uid":"' || app_id || '"}],"unmapped":{"app_id":"' || app_id
      || '","app_name":"An app","actor_source":"api_key","patch_number":"12","release_version":"1.4.0+27","chain_seq":"'
      || seq || '","previous_hash":"' || md5(seq::text) || md5(uid) || '"}}',
      sha256(int8send(seq))
    from (
      select seq,
        ${start.toISOString()}::timestamptz + make_interval(secs => (seq - ${from}::bigint) * ${stepMs / 1000}::double precision) as at,
        (${sql.val(auditEventNames)}::text[])[1 + floor(${auditEventNames.length}::int * power(random(), 2.5))::int] as operation,
        '8f4c1d20-0000-4000-8000-' || lpad(floor(${apps}::int * power(random(), 3))::int::text, 12, '0') as app_id,
        (${firstUserId}::bigint + floor(${actors}::int * power(random(), 3)))::bigint::text as actor_id,
        gen_random_uuid()::text as uid
      from generate_series(${from}::bigint, ${from + count - 1}::bigint) seq
    ) made`.execute(db)
}

async function insertChainEnd(db: Db, input: { organizationId: number; events: number; now: Date }): Promise<void> {
  await db
    .insertInto('audit_chains')
    .values({
      organization_id: input.organizationId,
      last_seq: input.events,
      last_hash: Buffer.alloc(32),
      last_time: input.now,
    })
    .execute()
}
