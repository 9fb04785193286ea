import { sql } from 'kysely'
import type { Db } from '../db/connection.ts'

export async function findAppOfEvent(db: Db, input: { appId: string }) {
  return await db
    .selectFrom('apps')
    .select(['organization_id', 'display_name'])
    .where('id', '=', input.appId)
    .executeTakeFirst()
}

export async function insertOutboxEvent(
  db: Db,
  input: {
    organizationId: number
    operation: string
    appId: string | null
    actorId: string | null
    occurredAt: Date
    event: string
  },
): Promise<void> {
  await db
    .insertInto('audit_outbox')
    .values({
      organization_id: input.organizationId,
      operation: input.operation,
      app_id: input.appId,
      actor_id: input.actorId,
      occurred_at: input.occurredAt,
      event: input.event,
    })
    .execute()
}

export type OutboxRow = Awaited<ReturnType<typeof takeOutboxEvents>>[number]

/** Takes committed events away, oldest first. */
export async function takeOutboxEvents(db: Db, input: { limit: number }) {
  const rows = await db
    .deleteFrom('audit_outbox')
    .where('id', 'in', (eb) => eb.selectFrom('audit_outbox').select('id').orderBy('id').limit(input.limit))
    .returningAll()
    .execute()
  return rows.toSorted((a, b) => a.id - b.id)
}

export async function hasOutboxEvents(db: Db): Promise<boolean> {
  // By the index: rows that were taken away may still lie in the table, as long as a backup keeps them.
  return (await db.selectFrom('audit_outbox').select('id').orderBy('id').limit(1).executeTakeFirst()) !== undefined
}

export async function listChains(db: Db, input: { organizationIds: number[] }) {
  return await db.selectFrom('audit_chains').selectAll().where('organization_id', 'in', input.organizationIds).execute()
}

export async function upsertChain(
  db: Db,
  input: { organizationId: number; lastSeq: number; lastHash: Buffer; lastTime: Date },
): Promise<void> {
  const values = { last_seq: input.lastSeq, last_hash: input.lastHash, last_time: input.lastTime }
  await db
    .insertInto('audit_chains')
    .values({ organization_id: input.organizationId, ...values })
    .onConflict((conflict) => conflict.column('organization_id').doUpdateSet(values))
    .execute()
}

export type SealedRow = {
  organization_id: number
  seq: number
  event_time: Date
  operation: string
  app_id: string | null
  actor_id: string | null
  event: string
  hash: Buffer
}

export async function insertSealedEvents(db: Db, rows: SealedRow[]): Promise<void> {
  await db.insertInto('audit_events').values(rows).execute()
}

/** Remembers, for each organization, the last event of a month, so that the chain can be verified from there on. */
export async function updateDroppedEnds(db: Db, input: { partition: string }): Promise<void> {
  await sql`
    update audit_chains chain set dropped_seq = last.seq, dropped_hash = last.hash
    from audit_chains each
    cross join lateral (
      select seq, hash from ${sql.table(input.partition)} event
      where event.organization_id = each.organization_id order by seq desc limit 1
    ) last
    where each.organization_id = chain.organization_id and last.seq > chain.dropped_seq`.execute(db)
}

/** Numbers of the first event at or after a time, and of the last at or before one: the log is in the order of both. */
export async function findSeqAtOrAfter(db: Db, input: { organizationId: number; time: Date }) {
  return await db
    .selectFrom('audit_events')
    .select('seq')
    .where('organization_id', '=', input.organizationId)
    .where('event_time', '>=', input.time)
    .orderBy('event_time')
    .orderBy('seq')
    .limit(1)
    .executeTakeFirst()
}

export async function findSeqAtOrBefore(db: Db, input: { organizationId: number; time: Date }) {
  return await db
    .selectFrom('audit_events')
    .select('seq')
    .where('organization_id', '=', input.organizationId)
    .where('event_time', '<=', input.time)
    .orderBy('event_time', 'desc')
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
}

export async function listEvents(
  db: Db,
  input: {
    organizationId: number
    order: 'asc' | 'desc'
    /** Both inclusive. */
    fromSeq: number
    toSeq: number
    appId: string | undefined
    actorId: string | undefined
    operations: string[] | undefined
    limit: number
  },
) {
  const { organizationId, order, fromSeq, toSeq, appId, actorId, operations, limit } = input
  return await db
    .selectFrom('audit_events')
    .select(['seq', 'event', 'actor_id'])
    .where('organization_id', '=', organizationId)
    .where('seq', '>=', fromSeq)
    .where('seq', '<=', toSeq)
    .$if(appId !== undefined, (query) => query.where('app_id', '=', appId ?? ''))
    .$if(actorId !== undefined, (query) => query.where('actor_id', '=', actorId ?? ''))
    .$if(operations !== undefined, (query) => query.where('operation', 'in', operations ?? []))
    .orderBy('seq', order)
    .limit(limit)
    .execute()
}

/** Those of the given people and service accounts that still exist. */
export async function listExistingActors(
  db: Db,
  input: { userIds: number[]; serviceAccountIds: number[] },
): Promise<{ userIds: Set<number>; serviceAccountIds: Set<number> }> {
  const users =
    input.userIds.length === 0
      ? []
      : await db.selectFrom('users').select('id').where('id', 'in', input.userIds).execute()
  const accounts =
    input.serviceAccountIds.length === 0
      ? []
      : await db.selectFrom('service_accounts').select('id').where('id', 'in', input.serviceAccountIds).execute()
  return { userIds: new Set(users.map(({ id }) => id)), serviceAccountIds: new Set(accounts.map(({ id }) => id)) }
}

/** One statement, so that the end of a chain and the last event are of the same moment. */
export async function listChainEnds(db: Db, input: { organizationId: number | undefined }) {
  const { organizationId } = input
  return await db
    .selectFrom('audit_chains as chain')
    .selectAll()
    .select((eb) =>
      eb
        .selectFrom('audit_events as event')
        .select('seq')
        .whereRef('event.organization_id', '=', 'chain.organization_id')
        .orderBy('seq', 'desc')
        .limit(1)
        .as('max_seq'),
    )
    .$if(organizationId !== undefined, (query) => query.where('organization_id', '=', organizationId ?? 0))
    .orderBy('organization_id')
    .execute()
}

/** Events of organizations that have no chain: none, unless somebody put them there. From one to the next along the index. */
export async function listOrganizationsWithoutChain(db: Db): Promise<number[]> {
  const { rows } = await sql<{ organization_id: number }>`
    with recursive organization as (
      (select organization_id from audit_events order by organization_id limit 1)
      union all
      select (
        select event.organization_id from audit_events event
        where event.organization_id > organization.organization_id order by event.organization_id limit 1
      ) from organization where organization.organization_id is not null
    )
    select organization_id from organization
    where organization_id not in (select organization_id from audit_chains)`.execute(db)
  return rows.map(({ organization_id }) => organization_id)
}

/** In the order of numbers, and of times where a number stands twice, which only an inserted row can cause. */
export async function listChainLinks(
  db: Db,
  input: { organizationId: number; after: { seq: number; eventTime: Date }; toSeq: number; limit: number },
) {
  const { organizationId, after, toSeq, limit } = input
  return await db
    .selectFrom('audit_events')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where(({ eb, refTuple, tuple }) => eb(refTuple('seq', 'event_time'), '>', tuple(after.seq, after.eventTime)))
    .where('seq', '<=', toSeq)
    .orderBy('seq')
    .orderBy('event_time')
    .limit(limit)
    .execute()
}

/** Time of the newest event of an organization, or of all. */
export async function findLastTime(db: Db, input: { organizationId?: number }): Promise<Date | undefined> {
  const { organizationId } = input
  const row = await db
    .selectFrom('audit_chains')
    .select('last_time')
    .$if(organizationId !== undefined, (query) => query.where('organization_id', '=', organizationId ?? 0))
    .orderBy('last_time', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.last_time
}
