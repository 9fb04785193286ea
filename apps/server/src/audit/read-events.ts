import type { AuditEvent, GetAuditLogsQuery } from '@godwit/contract'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { requireOrganizationFeature } from '../plans/actions.ts'
import { readActorId } from './describe-actor.ts'
import { findLastTime, findSeqAtOrAfter, findSeqAtOrBefore, listEvents, listExistingActors } from './queries.ts'
import { listStoredNames, presentEvent, readCursor, writeCursor } from './rules.ts'
import { sealBeforeReading } from './seal-before-reading.ts'

/** Oldest-first readers are not shown what is younger: they poll, and get it the next time (spec, Events, rule 3). */
const oldestFirstDelayMs = 60_000

type Page = { data: AuditEvent[]; next_cursor?: string }

/** A page of an organization's log. What was committed before the request is in it, unless the sealing of it is held up. */
export async function readEvents(
  deps: Deps,
  input: { organizationId: number; query: GetAuditLogsQuery },
): Promise<Page> {
  const { organizationId, query } = input
  const { db } = deps
  await requireOrganizationFeature(deps, db, { organizationId, feature: 'audit_log' })
  const cursor = readPosition(input)
  await sealBeforeReading(deps)
  const range = await findRange(db, { organizationId, query, cursor, now: deps.clock() })
  const isFound = range !== undefined && (await isReadableActor(db, query.actorId))
  const rows = isFound ? await listEvents(db, { ...describeFilters(input), ...range, limit: query.per_page + 1 }) : []
  const page = rows.slice(0, query.per_page)
  const data = await presentRows(db, page)
  const last = page.at(-1)?.seq
  if (query.order === 'asc') return { data, next_cursor: writeCursor({ organizationId, seq: last ?? cursor ?? 0 }) }
  const isMore = rows.length > page.length && last !== undefined
  return isMore ? { data, next_cursor: writeCursor({ organizationId, seq: last }) } : { data }
}

function readPosition(input: { organizationId: number; query: GetAuditLogsQuery }): number | undefined {
  const { organizationId, query } = input
  if (query.cursor === undefined) return undefined
  const cursor = readCursor(query.cursor)
  if (cursor?.organizationId === organizationId) return cursor.seq
  throw new AppError('invalid_request', "cursor: is not the next_cursor of an answer about this organization's log")
}

function describeFilters({ organizationId, query }: { organizationId: number; query: GetAuditLogsQuery }) {
  const { order, appId, actorId, operation } = query
  const operations = operation === undefined ? undefined : listStoredNames(operation)
  return { organizationId, order, appId, actorId, operations }
}

/** The numbers between which the page lies, or undefined when nothing can. */
async function findRange(
  db: Db,
  input: { organizationId: number; query: GetAuditLogsQuery; cursor: number | undefined; now: Date },
): Promise<{ fromSeq: number; toSeq: number } | undefined> {
  const { organizationId, query, cursor, now } = input
  const { order, startDate, endDate } = query
  let [fromSeq, toSeq] = [0, Number.MAX_SAFE_INTEGER]
  if (startDate !== undefined) {
    const first = await findSeqAtOrAfter(db, { organizationId, time: new Date(startDate) })
    if (first === undefined) return undefined
    fromSeq = first.seq
  }
  const settled = order === 'asc' ? await findSettledTime(db, { organizationId, now }) : undefined
  const ends = [settled, endDate === undefined ? undefined : new Date(endDate)].filter((end) => end !== undefined)
  if (ends.length > 0) {
    const time = new Date(Math.min(...ends.map((end) => end.getTime())))
    const last = await findSeqAtOrBefore(db, { organizationId, time })
    if (last === undefined) return undefined
    toSeq = last.seq
  }
  if (cursor !== undefined && order === 'asc') fromSeq = Math.max(fromSeq, cursor + 1)
  if (cursor !== undefined && order === 'desc') toSeq = Math.min(toSeq, cursor - 1)
  return fromSeq <= toSeq ? { fromSeq, toSeq } : undefined
}

/**
 * Until when events are old enough for who reads oldest first. undefined: all are. A clock that was ahead for a while has left
 * times in the future, which later events cannot go back behind: nobody should wait for years then.
 */
async function findSettledTime(db: Db, input: { organizationId: number; now: Date }): Promise<Date | undefined> {
  const last = await findLastTime(db, input)
  const isAhead = last !== undefined && last.getTime() > input.now.getTime() + oldestFirstDelayMs
  return isAhead ? undefined : new Date(input.now.getTime() - oldestFirstDelayMs)
}

/** Events of an actor that was deleted are no longer found by it (spec, `actorId`). */
async function isReadableActor(db: Db, actorId: string | undefined): Promise<boolean> {
  if (actorId === undefined) return true
  const gone = await listGoneActors(db, [actorId])
  return !gone.has(actorId)
}

async function presentRows(db: Db, rows: { event: string; actor_id: string | null }[]): Promise<AuditEvent[]> {
  const gone = await listGoneActors(
    db,
    rows.flatMap(({ actor_id }) => (actor_id === null ? [] : [actor_id])),
  )
  return rows.map(({ event, actor_id }) =>
    presentEvent(event, { isActorGone: actor_id !== null && gone.has(actor_id) }),
  )
}

async function listGoneActors(db: Db, actorIds: string[]): Promise<Set<string>> {
  const actors = [...new Set(actorIds)].map((actorId) => ({ actorId, ...readActorId(actorId) }))
  const existing = await listExistingActors(db, {
    userIds: actors.flatMap(({ kind, id }) => (kind === 'person' ? [id] : [])),
    serviceAccountIds: actors.flatMap(({ kind, id }) => (kind === 'service_account' ? [id] : [])),
  })
  const isThere = ({ kind, id }: { kind: string; id: number }) =>
    kind === 'person' ? existing.userIds.has(id) : existing.serviceAccountIds.has(id)
  return new Set(actors.filter((actor) => !isThere(actor)).map(({ actorId }) => actorId))
}
