import { auditEventNames, isAuditEventName, readActivityId } from '@godwit/contract'
import { sql } from 'kysely'
import { expect } from 'vitest'
import { z } from 'zod'
import { sealEvents } from '../../src/audit/seal-events.ts'
import { verifyChains } from '../../src/audit/verify-chains.ts'
import { createDb, createPool } from '../../src/db/connection.ts'

/**
 * API Activity [6003] as the public definition of OCSF 1.9.0 has it, apart from the service's own schema: of each object the
 * attributes that the audit log sends, with OCSF's types, enumerations, required attributes and constraints. Strict, so that
 * an attribute which OCSF does not know there is found.
 *
 * Two things are as our API's definition wants them, which goes beyond OCSF:
 * - `api.token` with `uid` and `name`: OCSF's token objects have kinds and times, but neither a `uid` nor a `name`.
 * - the attributes of `unmapped`: OCSF leaves them to the producer. All of ours are strings; `chain_seq` and
 *   `previous_hash` are the tamper evidence.
 */

/** timestamp_t: milliseconds since the Unix epoch. */
const Timestamp = z.int().min(0)
const Text = z.string().min(1)
/** email_t. OCSF asks for the form of RFC 5322, of which this is the part that can be told from other text. */
const EmailAddress = z.string().regex(/^[^@\s]+@[^@\s]+$/)
const IpAddress = z.union([z.ipv4(), z.ipv6()])

/** Required: product, version. The product is an _entity: at least one of name, uid. */
const Metadata = z.strictObject({
  version: z.literal('1.9.0'),
  product: z.strictObject({ name: Text, vendor_name: Text }),
  uid: z.uuid(),
  tenant_uid: z.string().regex(/^\d+$/),
  log_name: Text,
  correlation_uid: Text.optional(),
})

/** Required: operation. */
const Api = z.strictObject({
  operation: z.string().regex(/^[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*$/),
  token: z.strictObject({ uid: Text, name: Text }).optional(),
})

/** At least one of account, name, uid. type_id: unknown, user, admin, system, service, other. */
const User = z
  .strictObject({
    uid: Text.optional(),
    name: Text.optional(),
    email_addr: EmailAddress.optional(),
    type_id: z.union([0, 1, 2, 3, 4, 99].map((id) => z.literal(id))),
    type: Text.optional(),
  })
  .refine(({ uid, name }) => uid !== undefined || name !== undefined, 'needs one of name, uid')
  .refine(({ type_id, type }) => type_id !== 99 || type !== undefined, 'type says what type_id 99 stands for')

/** All recommended or optional. */
const Session = z.strictObject({
  uid: Text,
  created_time: Timestamp.optional(),
  issuer: Text.optional(),
  is_mfa: z.boolean().optional(),
})

/** At least one of process, user, session, app_name, app_uid. */
const Actor = z.strictObject({ user: User, session: Session.optional() })

/** At least one of ip, uid, name, hostname, svc_name, instance_uid, interface_uid, interface_name, domain. */
const NetworkEndpoint = z
  .strictObject({ ip: IpAddress.optional(), name: Text.optional() })
  .refine(({ ip, name }) => ip !== undefined || name !== undefined, 'needs one of ip, name')

/** resource_details, an _entity: at least one of name, uid. */
const Resource = z.strictObject({ type: Text, uid: Text })

/** Required: activity_id, actor, api, category_uid, class_uid, metadata, severity_id, src_endpoint, time, type_uid. */
const ApiActivity = z
  .strictObject({
    class_uid: z.literal(6003),
    category_uid: z.literal(6),
    activity_id: z.union([0, 1, 2, 3, 4, 99].map((id) => z.literal(id))),
    type_uid: z.int(),
    time: Timestamp,
    severity_id: z.union([0, 1, 2, 3, 4, 5, 6, 99].map((id) => z.literal(id))),
    status_id: z.union([0, 1, 2, 99].map((id) => z.literal(id))),
    metadata: Metadata,
    api: Api,
    actor: Actor,
    src_endpoint: NetworkEndpoint,
    http_request: z.strictObject({ user_agent: Text }).optional(),
    resources: z.array(Resource).min(1),
    unmapped: z.record(z.string().regex(/^[a-z]+(_[a-z]+)*$/), z.string()),
  })
  .refine(({ type_uid, class_uid, activity_id }) => type_uid === class_uid * 100 + activity_id, 'type_uid')
type ApiActivity = z.infer<typeof ApiActivity>

const actorSources = ['session', 'api_key', 'service_account', 'federated', 'ci', 'admin_api', 'none']

/** What our API's definition says beyond the class: each line is one sentence of it. */
const sentences: [string, (event: ApiActivity) => boolean][] = [
  ['activity_id is that of the name, and 99 without one', (e) => e.activity_id === readActivityId(e.api.operation)],
  ['status and severity: it worked, informational', (e) => e.severity_id === 1 && e.status_id === 1],
  [
    'type_id is 1, 4 or 99, or 0 when nobody is known',
    ({ actor: { user }, unmapped }) =>
      [1, 4, 99].includes(user.type_id) || (user.type_id === 0 && unmapped.actor_source === 'none'),
  ],
  ['a person has an e-mail', ({ actor: { user } }) => user.type_id !== 1 || user.email_addr !== undefined],
  ['nobody else has one', ({ actor: { user } }) => user.type_id === 1 || user.email_addr === undefined],
  ['only people have sessions', ({ actor }) => actor.session === undefined || actor.user.type_id === 1],
  ['a session and an API key exclude each other', (e) => e.actor.session === undefined || e.api.token === undefined],
  [
    'a service account is named sa_…',
    ({ actor: { user } }) => user.type_id !== 4 || /^(sa_\d+)?$/.test(user.uid ?? ''),
  ],
  ['actor_source is one of the list or a way to sign in', ({ unmapped }) => isActorSource(unmapped.actor_source)],
  [
    'an app has its name of then',
    ({ unmapped }) => (unmapped.app_id === undefined) === (unmapped.app_name === undefined),
  ],
  ['a CI job names itself', ({ unmapped: u }) => u.actor_source !== 'ci' || ('repository' in u && 'rule_id' in u)],
  ['without an address the name is unknown', ({ src_endpoint: s }) => (s.ip === undefined) === (s.name === 'unknown')],
  [
    'it has its place in the chain',
    ({ unmapped: u }) => /^[1-9]\d*$/.test(u.chain_seq ?? '') && /^[0-9a-f]{64}$/.test(u.previous_hash ?? ''),
  ],
  ['staff stays unnamed', (e) => e.actor.user.type_id !== 99 || isUnnamedStaff(e)],
]

function isActorSource(source: string | undefined): boolean {
  return source !== undefined && (actorSources.includes(source) || /^[a-z]+(_[a-z]+)*$/.test(source))
}

function isUnnamedStaff({ actor, api, src_endpoint, http_request, unmapped }: ApiActivity): boolean {
  const { user, session } = actor
  return (
    user.uid === undefined &&
    user.name === 'Godwit staff' &&
    user.type === 'godwit_staff' &&
    session === undefined &&
    api.token === undefined &&
    src_endpoint.name === 'unknown' &&
    http_request === undefined &&
    unmapped.actor_source === 'admin_api'
  )
}

/** What is wrong with an event, in words; nothing is the good answer. */
export function validateOcsf(event: unknown): string[] {
  const { data, error } = ApiActivity.safeParse(event)
  if (error !== undefined) return error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
  return sentences.filter(([, holds]) => !holds(data)).map(([sentence]) => `${sentence}: does not hold`)
}

export function expectOcsf(event: unknown): void {
  expect(validateOcsf(event), JSON.stringify(event, undefined, 2)).toEqual([])
}

/** Everything that is wrong with the log in a database: each event by itself, its name, and the chains. */
export async function findAuditProblems(connectionString: string): Promise<string[]> {
  const pool = createPool(connectionString, 2)
  // The database is dropped next, perhaps before the last connection has ended.
  pool.on('error', () => undefined)
  const db = createDb(pool)
  try {
    const { rows } = await sql<{ used: boolean }>`
      select exists (select from audit_outbox) or exists (select from audit_events) as used`.execute(db)
    if (rows[0]?.used !== true) return []
    await sealEvents(db)
    const { problems } = await verifyChains(db)
    const events = await db.selectFrom('audit_events').select(['operation', 'event']).execute()
    return [
      ...problems.map((problem) => `chain: ${JSON.stringify(problem)}`),
      ...events.flatMap(({ operation, event }) => {
        const found = validateOcsf(JSON.parse(event))
        if (!isAuditEventName(operation)) found.push(`is none of the ${auditEventNames.length} names`)
        return found.map((problem) => `${operation}: ${problem}\n${event}`)
      }),
    ]
  } finally {
    await db.destroy()
  }
}
