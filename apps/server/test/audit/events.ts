import type { AuditEvent, AuditEventName, GetAuditLogsQuery } from '@godwit/contract'
import type { Client } from '@godwit/sdk'
import type { z } from 'zod'
import { staff } from '../../src/audit/describe-actor.ts'
import { type Doer, recordEvent } from '../../src/audit/record-event.ts'
import { createDb, createPool, type Db } from '../../src/db/connection.ts'
import type { Actor } from '../../src/http/actor.ts'

const source = { address: '203.0.113.7', userAgent: 'test', correlationId: undefined }

/** A connection pool of one's own, which may outlive its database. */
export function openDb(connectionString: string): Db {
  const pool = createPool(connectionString)
  pool.on('error', () => undefined)
  return createDb(pool)
}

export function describePerson(userId: number): Actor {
  return {
    kind: 'person',
    userId,
    email: `person-${userId}@example.com`,
    name: `Person ${userId}`,
    credential: { kind: 'api_key', id: userId, name: 'key' },
    allows: new Set(),
    source,
  }
}

export function describeMachine(serviceAccountId: number, organizationId: number): Actor {
  return {
    kind: 'service_account',
    serviceAccountId,
    organizationId,
    role: 'admin',
    name: 'machine',
    credential: { kind: 'api_key', id: serviceAccountId, name: 'key' },
    allows: new Set(),
    source,
  }
}

export const staffDoer: Doer = { by: staff, from: { ...source, address: undefined, userAgent: undefined } }

export type TestEvent = {
  organizationId: number
  at: Date
  /** Found again in the event's `unmapped.label`. */
  label: string
  operation?: AuditEventName
  appId?: string | undefined
  doer: Doer
}

/** As an action does it, in its transaction. */
export async function record(trx: Db, event: TestEvent): Promise<void> {
  const { organizationId, at, label, operation = 'app.update', appId, doer } = event
  await recordEvent({ clock: () => at }, trx, doer, {
    organizationId,
    operation,
    resources: [{ type: 'organization', uid: organizationId }],
    details: { label },
    ...(appId === undefined ? {} : { app: { id: appId, name: `App ${appId}` } }),
  })
}

export async function recordAll(db: Db, events: TestEvent[]): Promise<void> {
  await db.transaction().execute(async (trx) => {
    for (const event of events) await record(trx, event)
  })
}

export type Query = z.input<typeof GetAuditLogsQuery>

export function readLabels(events: AuditEvent[]): (string | undefined)[] {
  return events.map(({ unmapped }) => unmapped.label)
}

/** Page after page until none follows, or, oldest first, until one is empty. */
export async function readAll(api: Client, organizationId: number, query: Query = {}): Promise<AuditEvent[]> {
  const events: AuditEvent[] = []
  let { cursor } = query
  for (;;) {
    const page = { per_page: '100', ...query, ...(cursor === undefined ? {} : { cursor }) }
    const { data, next_cursor } = await api.listAuditLogs({ params: { organizationId }, query: page })
    events.push(...data)
    if (next_cursor === undefined || data.length === 0) return events
    cursor = next_cursor
  }
}
