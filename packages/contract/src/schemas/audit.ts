import { z } from 'zod'
import { Int64 } from './primitives.ts'

/** Names of the events that the audit log records (`api.operation`). */
export const auditEventNames = [
  'organization.create',
  'organization.rename',
  'organization.delete',
  'organization.ownership_transfer',
  'org_allowed_domain.add',
  'org_allowed_domain.remove',
  'org_member.add',
  'org_member.role_update',
  'org_member.remove',
  'invitation.create',
  'invitation.revoke',
  'invitation.accept',
  'invitation.decline',
  'service_account.create',
  'service_account.role_update',
  'service_account.delete',
  'service_account_key.create',
  'service_account_key.revoke',
  'service_account_trust_rule.create',
  'service_account_trust_rule.delete',
  'service_account.sign_in',
  'app.create',
  'app.update',
  'app.transfer',
  'app.delete',
  'app_collaborator.add',
  'app_collaborator.role_update',
  'app_collaborator.remove',
  'channel.create',
  'channel.delete',
  'release.create',
  'release.update',
  'release.delete',
  'release_artifact.upload',
  'release_artifact.replace',
  'release_artifact.delete',
  'release_artifact.download',
  'patch.create',
  'patch_artifact.upload',
  'patch.promote',
  'patch.channel_update',
  'patch.rollback',
  'patch.rollforward',
  'patch.notes_update',
] as const
export type AuditEventName = (typeof auditEventNames)[number]

export const AuditActor = z.object({
  user: z.object({
    uid: z.string().optional(),
    name: z.string().optional(),
    email_addr: z.string().optional(),
    type_id: z.int().meta({ description: '1 person, 4 service account, 99 service staff.' }),
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

export const GetAuditLogsQuery = z.object({
  order: z.enum(['asc', 'desc']).default('desc'),
  per_page: z.int().min(1).max(100).default(30),
  cursor: z.string().optional(),
  startDate: z.iso.datetime({ offset: true }).optional(),
  endDate: z.iso.datetime({ offset: true }).optional(),
  appId: z.string().optional(),
  actorId: z.string().optional(),
  operation: z.enum(auditEventNames).optional(),
})

export const GetAuditLogsResponse = z
  .object({ data: z.array(AuditEvent), next_cursor: z.string().optional() })
  .meta({ id: 'GetAuditLogsResponse' })
