import { randomUUID } from 'node:crypto'
import type { AuditEvent, AuditEventName } from '@godwit/contract'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { Actor, RequestSource } from '../http/actor.ts'
import { type AuditActor, describeActor } from './describe-actor.ts'
import { findAppOfEvent, insertOutboxEvent } from './queries.ts'
import type { RecordedEvent } from './rules.ts'

type ResourceType =
  | 'organization'
  | 'domain'
  | 'user'
  | 'invitation'
  | 'service_account'
  | 'service_account_key'
  | 'service_account_trust_rule'
  | 'app'
  | 'channel'
  | 'release'
  | 'release_artifact'
  | 'patch'
  | 'patch_artifact'

export type EventDetails = {
  operation: AuditEventName
  /** What was acted on, the most specific first. */
  resources: { type: ResourceType; uid: string | number }[]
  /** What the event's name does not say, such as a number or a role of before. Absent values are left out. */
  details?: Record<string, string | number | null | undefined>
}

/** Who did it and from where. An actor knows both; the operator's commands and uploads say them apart. */
export type Doer = Actor | { by: AuditActor; from: RequestSource }

/**
 * Records what an action changes, in the action's own transaction: no change without its event, no event without its
 * change. Call it last, when nothing can refuse the change any more.
 */
export async function recordEvent(
  deps: Pick<Deps, 'clock'>,
  trx: Db,
  doer: Doer,
  event: EventDetails & { organizationId: number; app?: { id: string; name: string } },
): Promise<void> {
  const { operation, organizationId, app, resources, details = {} } = event
  const by = 'by' in doer ? doer.by : describeActor(doer)
  const from = 'by' in doer ? doer.from : doer.source
  const told = Object.entries(details).filter(([, value]) => value !== undefined && value !== null)
  const recorded: RecordedEvent = {
    uid: randomUUID(),
    actor: by.actor,
    ...(by.token === undefined ? {} : { token: by.token }),
    ...describeRequest(from),
    resources: resources.map(({ type, uid }) => ({ type, uid: String(uid) })),
    unmapped: {
      ...(app === undefined ? {} : { app_id: app.id, app_name: app.name }),
      ...by.unmapped,
      ...Object.fromEntries(told.map(([name, value]) => [name, String(value)])),
    },
  }
  await insertOutboxEvent(trx, {
    organizationId,
    operation,
    appId: app?.id ?? null,
    actorId: by.actorId ?? null,
    occurredAt: deps.clock(),
    event: JSON.stringify(recorded),
  })
}

/** The same for what happens to an app: the app says which organization's log it belongs to. */
export async function recordAppEvent(
  deps: Pick<Deps, 'clock'>,
  trx: Db,
  doer: Doer,
  event: EventDetails & { appId: string },
): Promise<void> {
  const { appId, ...rest } = event
  const app = await findAppOfEvent(trx, { appId })
  if (app === undefined) throw new AppError('not_found')
  await recordEvent(deps, trx, doer, {
    ...rest,
    organizationId: app.organization_id,
    app: { id: appId, name: app.display_name },
  })
}

function describeRequest(
  from: RequestSource,
): Pick<RecordedEvent, 'correlation_uid'> & Pick<AuditEvent, 'src_endpoint' | 'http_request'> {
  return {
    ...(from.correlationId === undefined ? {} : { correlation_uid: from.correlationId }),
    src_endpoint: from.address === undefined ? { name: 'unknown' } : { ip: from.address },
    ...(from.userAgent === undefined ? {} : { http_request: { user_agent: from.userAgent } }),
  }
}
