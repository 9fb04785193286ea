import { z } from 'zod'
import { Instant, Int64, text } from './primitives.ts'

/** OCSF 1.9.0, API Activity [6003], `activity_id`. */
const activityIds = { create: 1, read: 2, update: 3, delete: 4, other: 99 } as const
export type AuditActivity = keyof typeof activityIds

/** Every event that the audit log records (`api.operation`), with what was done to the first of its resources. */
export const auditEvents = {
  'organization.create': 'create',
  'organization.rename': 'update',
  'organization.delete': 'delete',
  'organization.ownership_transfer': 'update',
  'org_allowed_domain.add': 'create',
  'org_allowed_domain.remove': 'delete',
  'org_member.add': 'create',
  'org_member.role_update': 'update',
  'org_member.remove': 'delete',
  'invitation.create': 'create',
  'invitation.revoke': 'delete',
  'invitation.accept': 'update',
  'invitation.decline': 'update',
  'service_account.create': 'create',
  'service_account.role_update': 'update',
  'service_account.delete': 'delete',
  'service_account_key.create': 'create',
  'service_account_key.revoke': 'delete',
  'service_account_trust_rule.create': 'create',
  'service_account_trust_rule.delete': 'delete',
  'service_account.sign_in': 'other',
  'app.create': 'create',
  'app.update': 'update',
  'app.transfer': 'update',
  'app.delete': 'delete',
  'app_collaborator.add': 'create',
  'app_collaborator.role_update': 'update',
  'app_collaborator.remove': 'delete',
  'channel.create': 'create',
  'channel.delete': 'delete',
  'release.create': 'create',
  'release.update': 'update',
  'release.delete': 'delete',
  'release_artifact.upload': 'create',
  'release_artifact.replace': 'update',
  'release_artifact.delete': 'delete',
  'release_artifact.download': 'read',
  'patch.create': 'create',
  'patch_artifact.upload': 'create',
  'patch.promote': 'update',
  'patch.channel_update': 'update',
  'patch.rollback': 'update',
  'patch.rollforward': 'update',
  'patch.notes_update': 'update',
} as const satisfies Record<string, AuditActivity>
export type AuditEventName = keyof typeof auditEvents
export const auditEventNames = Object.keys(auditEvents) as [AuditEventName, ...AuditEventName[]]

export function isAuditEventName(name: string): name is AuditEventName {
  return Object.hasOwn(auditEvents, name)
}

/** `activity_id` of an event; 99 for one that is recorded no longer. */
export function readActivityId(name: string): number {
  return activityIds[isAuditEventName(name) ? auditEvents[name] : 'other']
}

export const AuditActor = z.object({
  user: z.object({
    uid: z.string().optional(),
    name: z.string().optional(),
    email_addr: z.string().optional(),
    type_id: z.int().meta({ description: '1 person, 4 service account, 99 service staff, 0 unknown.' }),
    type: z.string().optional(),
  }),
  session: z
    .object({
      uid: z.string(),
      created_time: Int64.optional(),
      issuer: z.string().optional(),
      is_mfa: z.boolean().optional(),
    })
    .optional(),
})

export const AuditEvent = z
  .object({
    class_uid: z.literal(6003),
    category_uid: z.literal(6),
    activity_id: z.int().meta({ description: '1 create, 2 read, 3 update, 4 delete, 99 other.' }),
    type_uid: z.int(),
    time: Int64.meta({ description: 'Milliseconds since the Unix epoch.' }),
    severity_id: z.int(),
    status_id: z.int(),
    metadata: z.object({
      version: z.string(),
      product: z.object({ name: z.string(), vendor_name: z.string() }),
      uid: z.string(),
      tenant_uid: z.string(),
      log_name: z.string(),
      correlation_uid: z.string().optional(),
    }),
    api: z.object({
      operation: z.string(),
      token: z.object({ uid: z.string(), name: z.string() }).optional(),
    }),
    actor: AuditActor,
    src_endpoint: z.object({ ip: z.string().optional(), name: z.string().optional() }),
    http_request: z.object({ user_agent: z.string() }).optional(),
    resources: z.array(z.object({ type: z.string(), uid: z.string() })),
    unmapped: z.record(z.string(), z.string()),
  })
  .meta({ id: 'AuditEvent', description: 'OCSF 1.9.0 API Activity, class 6003.' })
export type AuditEvent = z.infer<typeof AuditEvent>

export const GetAuditLogsQuery = z
  .object({
    order: z.enum(['asc', 'desc']).default('desc').meta({
      description:
        '`desc`: newest first. `asc`: oldest first, without the events of the last minute, and always with a `next_cursor`: for polling.',
    }),
    per_page: z
      .string()
      .regex(/^0*([1-9]\d?|100)$/, 'must be 1 to 100')
      .transform(Number)
      .default(30)
      .meta({ description: '1 to 100.' }),
    cursor: z.string().max(200).optional().meta({ description: 'The `next_cursor` of an answer of before.' }),
    startDate: Instant.optional().meta({ description: 'Inclusive. ISO 8601 with a time zone.' }),
    endDate: Instant.optional().meta({ description: 'Inclusive. ISO 8601 with a time zone.' }),
    appId: text({ min: 0, max: 128 }).optional().meta({ description: 'Only events of this app.' }),
    actorId: text({ min: 0, max: 64 }).optional().meta({
      description: 'Only events of this person or service account: its `actor.user.uid`.',
    }),
    operation: z.enum(auditEventNames).optional().meta({ description: 'Only events with this name.' }),
  })
  .meta({ id: 'GetAuditLogsQuery' })
export type GetAuditLogsQuery = z.output<typeof GetAuditLogsQuery>

export const GetAuditLogsResponse = z
  .object({
    data: z.array(AuditEvent),
    next_cursor: z.string().optional().meta({ description: 'Absent: keep the cursor of before.' }),
  })
  .meta({ id: 'GetAuditLogsResponse' })
