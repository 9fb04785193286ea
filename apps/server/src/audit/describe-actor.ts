import type { AuditEvent } from '@godwit/contract'
import type { Actor } from '../http/actor.ts'

/** An actor as events name it. It is kept with what the actor has asked for and another request completes. */
export type AuditActor = {
  /** What `actorId` finds; undefined for service staff, whose events are never found by it. */
  actorId: string | undefined
  actor: AuditEvent['actor']
  token?: { uid: string; name: string }
  /** `actor_source`, and for a CI job which one it is. */
  unmapped: Record<string, string>
}

/** The operator's commands: which member of the staff it was stays unsaid (spec, Event format). */
export const staff: AuditActor = {
  actorId: undefined,
  actor: { user: { name: 'Godwit staff', type_id: 99, type: 'godwit_staff' } },
  unmapped: { actor_source: 'admin_api' },
}

/** For an upload that was registered before it was kept by whom. */
export const unknownActor: AuditActor = {
  actorId: undefined,
  actor: { user: { name: 'unknown', type_id: 0 } },
  unmapped: { actor_source: 'none' },
}

export function describeActor(actor: Actor): AuditActor {
  const { credential } = actor
  if (actor.kind === 'newcomer') throw new Error('nobody without an account changes what an organization has')
  const isPerson = actor.kind === 'person'
  const uid = isPerson ? String(actor.userId) : describeServiceAccountId(actor.serviceAccountId)
  const user = isPerson
    ? { uid, name: actor.name, email_addr: actor.email, type_id: 1 }
    : { uid, name: actor.name, type_id: 4 }
  const token = credential.kind === 'api_key' ? { uid: String(credential.id), name: credential.name } : undefined
  return {
    actorId: uid,
    actor: { user, ...describeSession(credential) },
    ...(token === undefined ? {} : { token }),
    unmapped: describeSource(actor),
  }
}

/** People and service accounts have ids of their own counters: the prefix keeps them apart. */
export function describeServiceAccountId(id: number): string {
  return `sa_${id}`
}

function describeSession(credential: Actor['credential']): Pick<AuditEvent['actor'], 'session'> {
  if (credential.kind !== 'session' && credential.kind !== 'id_token') return {}
  return {
    session: {
      uid: credential.id,
      created_time: credential.createdAt.getTime(),
      issuer: credential.issuer,
      ...(credential.isMfa === undefined ? {} : { is_mfa: credential.isMfa }),
    },
  }
}

function describeSource({ kind, credential }: Actor): Record<string, string> {
  if (credential.kind === 'federated') {
    return {
      actor_source: 'ci',
      repository: credential.repository,
      rule_id: String(credential.trustRuleId),
      ...(credential.runId === undefined ? {} : { run_id: credential.runId }),
    }
  }
  if (kind === 'service_account') return { actor_source: 'service_account' }
  return { actor_source: credential.kind === 'api_key' ? 'api_key' : 'session' }
}

/** Whose id a `uid` is. Text that is none has the id 0, which nobody has. */
export function readActorId(uid: string): { kind: 'person' | 'service_account'; id: number } {
  const [, prefix, digits = '0'] = /^(sa_)?(\d{1,15})$/.exec(uid) ?? []
  return { kind: prefix === undefined ? 'person' : 'service_account', id: Number(digits) }
}
