import type { ServiceAccountRole } from '@godwit/contract'
import type { Db } from '../db/connection.ts'

export async function insertServiceAccount(
  db: Db,
  input: { organizationId: number; name: string; role: ServiceAccountRole; at: Date },
) {
  const { organizationId, name, role, at } = input
  return await db
    .insertInto('service_accounts')
    .values({ organization_id: organizationId, name, role, created_at: at, updated_at: at })
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function listServiceAccounts(db: Db, input: { organizationId: number }) {
  return await db
    .selectFrom('service_accounts')
    .selectAll()
    .where('organization_id', '=', input.organizationId)
    .orderBy('id')
    .execute()
}

export async function findServiceAccount(db: Db, input: { organizationId: number; serviceAccountId: number }) {
  return await db
    .selectFrom('service_accounts')
    .selectAll()
    .where('id', '=', input.serviceAccountId)
    .where('organization_id', '=', input.organizationId)
    .executeTakeFirst()
}

/** Until the end of the transaction the account stays as it is: neither deleted nor changed by another one. */
export async function lockServiceAccount(db: Db, input: { organizationId: number; serviceAccountId: number }) {
  return await db
    .selectFrom('service_accounts')
    .selectAll()
    .where('id', '=', input.serviceAccountId)
    .where('organization_id', '=', input.organizationId)
    .forUpdate()
    .executeTakeFirst()
}

export async function updateServiceAccountRole(
  db: Db,
  input: { serviceAccountId: number; role: ServiceAccountRole; at: Date },
): Promise<void> {
  await db
    .updateTable('service_accounts')
    .set({ role: input.role, updated_at: input.at })
    .where('id', '=', input.serviceAccountId)
    .execute()
}

/** With its keys, its trust rules and their sessions. */
export async function deleteServiceAccount(db: Db, input: { serviceAccountId: number }): Promise<void> {
  await db.deleteFrom('service_accounts').where('id', '=', input.serviceAccountId).execute()
}

/** Also one that was revoked. */
export async function findServiceAccountKey(db: Db, input: { serviceAccountId: number; keyId: number }) {
  return await db
    .selectFrom('api_keys')
    .select(['name', 'revoked_at'])
    .where('id', '=', input.keyId)
    .where('service_account_id', '=', input.serviceAccountId)
    .executeTakeFirst()
}
