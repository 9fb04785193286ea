import { createHash } from 'node:crypto'
import { type AuditEvent, type AuditEventName, readActivityId } from '@godwit/contract'

const ocsfVersion = '1.9.0'
const classUid = 6003
const product = { name: 'Godwit', vendor_name: 'Godwit' }

/** What a change leaves of an event: all but its number, its time, and its place in the chain. */
export type RecordedEvent = Pick<AuditEvent, 'actor' | 'src_endpoint' | 'http_request' | 'resources' | 'unmapped'> & {
  uid: string
  correlation_uid?: string
  token?: { uid: string; name: string }
}

/** Hash of the event before the first. */
export const genesisHash = Buffer.alloc(32)

/** An event whose number and place in the chain are settled; the text is what is hashed, kept and answered. */
export function sealEvent(input: {
  organizationId: number
  seq: number
  eventTime: Date
  operation: string
  recorded: RecordedEvent
  previousHash: Buffer
}): { text: string; hash: Buffer } {
  const { organizationId, seq, eventTime, operation, recorded, previousHash } = input
  const activityId = readActivityId(operation)
  const event: AuditEvent = {
    class_uid: classUid,
    category_uid: 6,
    activity_id: activityId,
    type_uid: classUid * 100 + activityId,
    time: eventTime.getTime(),
    // Informational, success: what was refused or failed is not recorded.
    severity_id: 1,
    status_id: 1,
    metadata: {
      version: ocsfVersion,
      product,
      uid: recorded.uid,
      tenant_uid: String(organizationId),
      log_name: 'audit',
      ...(recorded.correlation_uid === undefined ? {} : { correlation_uid: recorded.correlation_uid }),
    },
    api: { operation, ...(recorded.token === undefined ? {} : { token: recorded.token }) },
    actor: recorded.actor,
    src_endpoint: recorded.src_endpoint,
    ...(recorded.http_request === undefined ? {} : { http_request: recorded.http_request }),
    resources: recorded.resources,
    unmapped: { ...recorded.unmapped, chain_seq: String(seq), previous_hash: previousHash.toString('hex') },
  }
  const text = JSON.stringify(event)
  return { text, hash: hashEvent(text) }
}

export function hashEvent(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Names of before → names of now. A renamed event appears under its new name, also where it was recorded before. */
export const renamedEvents: Readonly<Record<string, AuditEventName>> = {}

/** The names under which events of this name may be stored. */
export function listStoredNames(name: AuditEventName, renamed = renamedEvents): string[] {
  const before = Object.entries(renamed).filter(([, now]) => now === name)
  return [name, ...before.map(([old]) => old)]
}

/**
 * An event as it is read: under its present name, and without the id of an actor that has been deleted. One that is
 * recorded no longer keeps the name that it has, as something else that was done (activity 99).
 */
export function presentEvent(
  text: string,
  input: { isActorGone: boolean; renamed?: Readonly<Record<string, AuditEventName>> },
): AuditEvent {
  const event = JSON.parse(text) as AuditEvent
  const stored = event.api.operation
  const operation = (input.renamed ?? renamedEvents)[stored] ?? stored
  const activityId = readActivityId(operation)
  if (input.isActorGone) delete event.actor.user.uid
  return {
    ...event,
    activity_id: activityId,
    type_uid: classUid * 100 + activityId,
    api: { ...event.api, operation },
  }
}

export type Cursor = { organizationId: number; seq: number }

/** A version, the organization, the number. */
const cursorForm = /^1\.(\d{1,15})\.(\d{1,15})$/

/**
 * Where a reader is: after this event in its direction. It names a number only, so that later events change nothing. Another
 * organization's would silently skip events, so it says whose it is.
 */
export function writeCursor({ organizationId, seq }: Cursor): string {
  return Buffer.from(`1.${organizationId}.${seq}`).toString('base64url')
}

/** undefined when it is none of ours. */
export function readCursor(text: string): Cursor | undefined {
  const [, organizationId, seq] = cursorForm.exec(Buffer.from(text, 'base64url').toString()) ?? []
  if (organizationId === undefined || seq === undefined) return undefined
  const cursor = { organizationId: Number(organizationId), seq: Number(seq) }
  // Decoding forgives characters that do not belong there.
  return writeCursor(cursor) === text ? cursor : undefined
}
