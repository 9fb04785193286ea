import type { InvitedRole } from '@godwit/contract'
import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../db/connection.ts'
import { hashToken } from '../random-tokens.ts'

const isOf = (email: string): RawBuilder<boolean> => sql<boolean>`lower(invitations.email) = ${email.toLowerCase()}`

/** Invitations of organizations that are not being deleted, with the names that an answer shows. */
const selectInvitations = (db: Db) =>
  db
    .selectFrom('invitations')
    .innerJoin('organizations', 'organizations.id', 'invitations.organization_id')
    .leftJoin('apps', 'apps.id', 'invitations.app_id')
    .leftJoin('users as inviter', 'inviter.id', 'invitations.invited_by_user_id')
    .select([
      'invitations.id',
      'invitations.organization_id',
      'organizations.name as organization_name',
      'invitations.app_id',
      'apps.display_name as app_name',
      'invitations.email',
      'invitations.role',
      'inviter.email as invited_by',
      'invitations.created_at',
      'invitations.expires_at',
    ])
    .where('organizations.deletion_started_at', 'is', null)

const selectOpenInvitations = (db: Db, now: Date) =>
  selectInvitations(db).where('invitations.status', '=', 'pending').where('invitations.expires_at', '>', now)

export type InvitationRow = Awaited<ReturnType<typeof findInvitation>>

/** Whatever has become of it. */
export async function findInvitation(db: Db, input: { id: number }) {
  return await selectInvitations(db).where('invitations.id', '=', input.id).executeTakeFirstOrThrow()
}

/** The invitation behind a link, while it can be accepted. */
export async function findInvitationByToken(db: Db, input: { token: string; now: Date }) {
  return await selectOpenInvitations(db, input.now)
    .where('invitations.token_hash', '=', hashToken(input.token))
    .executeTakeFirst()
}

export async function findInvitationIdByToken(db: Db, input: { token: string }): Promise<number | undefined> {
  const row = await db
    .selectFrom('invitations')
    .select('id')
    .where('token_hash', '=', hashToken(input.token))
    .executeTakeFirst()
  return row?.id
}

export async function listInvitationsOfOrganization(db: Db, input: { organizationId: number; now: Date }) {
  return await selectOpenInvitations(db, input.now)
    .where('invitations.organization_id', '=', input.organizationId)
    .orderBy('invitations.id')
    .execute()
}

export async function listInvitationsByEmail(db: Db, input: { email: string; now: Date }) {
  return await selectOpenInvitations(db, input.now).where(isOf(input.email)).orderBy('invitations.id').execute()
}

export async function hasPendingInvitation(db: Db, input: { email: string; now: Date }): Promise<boolean> {
  return (await listInvitationsByEmail(db, input)).length > 0
}

/** Where an invitation leads, before it can be locked: it moves when its app does. */
export async function findInvitationPlace(db: Db, input: { id: number }) {
  return await db
    .selectFrom('invitations')
    .select(['organization_id', 'app_id'])
    .where('id', '=', input.id)
    .executeTakeFirst()
}

export async function lockInvitation(db: Db, input: { id: number }) {
  return await db.selectFrom('invitations').selectAll().where('id', '=', input.id).forUpdate().executeTakeFirst()
}

/** Renews the invitation that is still open for the same e-mail to the same. Answers its id. */
export async function upsertInvitation(
  db: Db,
  input: {
    organizationId: number
    appId: string | null
    email: string
    role: InvitedRole
    token: string
    isMailed: boolean
    invitedByUserId: number | null
    createdAt: Date
    expiresAt: Date
  },
): Promise<number> {
  const renewed = {
    email: input.email,
    role: input.role,
    token_hash: hashToken(input.token),
    is_mailed: input.isMailed,
    invited_by_user_id: input.invitedByUserId,
    created_at: input.createdAt,
    expires_at: input.expiresAt,
  }
  const { id } = await db
    .insertInto('invitations')
    .values({ organization_id: input.organizationId, app_id: input.appId, ...renewed })
    .onConflict((conflict) =>
      conflict
        .expression(sql`organization_id, lower(email), app_id`)
        .where(sql<boolean>`status = 'pending'`)
        .doUpdateSet(renewed),
    )
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

export async function updateInvitationStatus(
  db: Db,
  input: { id: number } & ({ status: 'accepted'; userId: number } | { status: 'declined' | 'revoked' }),
): Promise<void> {
  await db
    .updateTable('invitations')
    .set({ status: input.status, accepted_by_user_id: input.status === 'accepted' ? input.userId : null })
    .where('id', '=', input.id)
    .execute()
}

/** Closes the invitation of somebody who has been let in without it; left open, it would let them back in one day. */
export async function updatePendingInvitationAccepted(
  db: Db,
  input: { organizationId: number; appId: string | null; email: string; userId: number },
): Promise<void> {
  await db
    .updateTable('invitations')
    .set({ status: 'accepted', accepted_by_user_id: input.userId })
    .where('organization_id', '=', input.organizationId)
    .where('app_id', 'is not distinct from', input.appId)
    .where(isOf(input.email))
    .where('status', '=', 'pending')
    .execute()
}

export async function updateOrganizationOfInvitations(
  db: Db,
  input: { appId: string; organizationId: number },
): Promise<void> {
  await db
    .updateTable('invitations')
    .set({ organization_id: input.organizationId })
    .where('app_id', '=', input.appId)
    .execute()
}
