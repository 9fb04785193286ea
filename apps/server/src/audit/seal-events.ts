import { sql } from 'kysely'
import type { Db } from '../db/connection.ts'
import { createPartition, hasPartition, partitionOf } from '../db/month-partitions.ts'
import {
  insertSealedEvents,
  listChains,
  type OutboxRow,
  type SealedRow,
  takeOutboxEvents,
  upsertChain,
} from './queries.ts'
import { genesisHash, type RecordedEvent, sealEvent } from './rules.ts'

/** Any number will do, as long as nothing else in this database locks it. */
const sealLock = 7_301_996

/** At most this many in one transaction: some tens of milliseconds. */
const batchSize = 500

type SealOptions = {
  /** The sealer's own time: no event is later, whatever the clock of the instance said that recorded it. */
  now?: Date
  /** false: gives up, with undefined, while somebody else seals. */
  waits?: boolean
}

/**
 * Numbers the events that have been committed, in the order in which they became visible, and links each to the one before
 * it in its organization. One at a time among all instances; writers never wait for it. Returns how many it was.
 */
export async function sealEvents(db: Db, options: SealOptions = {}): Promise<number | undefined> {
  let total = 0
  for (;;) {
    const count = await db.transaction().execute(async (trx) => await sealBatch(trx, options))
    if (count === undefined) return undefined
    total += count
    if (count < batchSize) return total
  }
}

/** Held to the end of the transaction: nobody seals meanwhile. */
export async function lockSealing(trx: Db): Promise<void> {
  await sql`select pg_advisory_xact_lock(${sealLock})`.execute(trx)
}

async function tryLockSealing(trx: Db): Promise<boolean> {
  const { rows } = await sql<{ free: boolean }>`select pg_try_advisory_xact_lock(${sealLock}) as free`.execute(trx)
  return rows[0]?.free === true
}

async function sealBatch(trx: Db, { now, waits = true }: SealOptions): Promise<number | undefined> {
  if (waits) await lockSealing(trx)
  else if (!(await tryLockSealing(trx))) return undefined
  const taken = await takeOutboxEvents(trx, { limit: batchSize })
  if (taken.length === 0) return 0
  const byOrganization = Map.groupBy(taken, ({ organization_id }) => organization_id)
  const chains = await listChains(trx, { organizationIds: [...byOrganization.keys()] })
  const sealed: SealedRow[] = []
  for (const [organizationId, rows] of byOrganization) {
    const chain = chains.find(({ organization_id }) => organization_id === organizationId)
    const links = linkRows(rows, now, {
      seq: chain?.last_seq ?? 0,
      hash: chain?.last_hash ?? genesisHash,
      time: chain?.last_time ?? new Date(0),
    })
    const last = links.at(-1)
    if (last === undefined) continue
    sealed.push(...links)
    await upsertChain(trx, {
      organizationId,
      lastSeq: last.seq,
      lastHash: last.hash,
      lastTime: last.event_time,
    })
  }
  await createPartitionsFor(trx, sealed)
  await insertSealedEvents(trx, sealed)
  return taken.length
}

/** The time of an event that was committed late is moved up to that of the one before it, so that order and time agree. */
function linkRows(
  rows: OutboxRow[],
  now: Date | undefined,
  end: { seq: number; hash: Buffer; time: Date },
): SealedRow[] {
  let { seq, hash: previousHash, time } = end
  return rows.map((row) => {
    seq += 1
    const occurredAt = now !== undefined && row.occurred_at > now ? now : row.occurred_at
    time = occurredAt > time ? occurredAt : time
    const { organization_id: organizationId, operation, app_id, actor_id } = row
    const recorded = JSON.parse(row.event) as RecordedEvent
    const { text, hash } = sealEvent({ organizationId, seq, eventTime: time, operation, recorded, previousHash })
    previousHash = hash
    return {
      organization_id: organizationId,
      seq,
      event_time: time,
      operation,
      app_id,
      actor_id,
      event: text,
      hash,
    }
  })
}

async function createPartitionsFor(trx: Db, rows: SealedRow[]): Promise<void> {
  const all = rows.map(({ event_time }) => partitionOf('audit_events', event_time))
  for (const partition of new Map(all.map((each) => [each.name, each])).values()) {
    if (!(await hasPartition(trx, partition))) await createPartition(trx, partition)
  }
}
