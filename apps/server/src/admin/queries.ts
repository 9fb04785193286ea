import type { Plan } from '@godwit/contract'
import type { Db } from '../db/connection.ts'

export async function updateUserPlan(db: Db, input: { id: number; plan: Plan; at: Date }): Promise<void> {
  await db.updateTable('users').set({ plan: input.plan, updated_at: input.at }).where('id', '=', input.id).execute()
}

export async function listUsers(db: Db) {
  return await db
    .selectFrom('users')
    .select((eb) => [
      'id',
      'email',
      'display_name as name',
      'plan',
      eb('email_verified_at', 'is not', null).as('verified'),
      eb('password_hash', 'is not', null).as('password'),
      eb('totp_enabled_at', 'is not', null).as('second_factor'),
      'created_at',
    ])
    .orderBy('id')
    .execute()
}

export async function listOrganizations(db: Db) {
  return await db
    .selectFrom('organizations')
    .leftJoin('organization_members as owner', (join) =>
      join.onRef('owner.organization_id', '=', 'organizations.id').on('owner.role', '=', 'owner'),
    )
    .leftJoin('users', 'users.id', 'owner.user_id')
    .select([
      'organizations.id',
      'organizations.organization_type as type',
      'organizations.name',
      'users.email as owner',
      'organizations.created_at',
      'organizations.deletion_started_at',
    ])
    .orderBy('organizations.id')
    .execute()
}

export async function listAllAllowedDomains(db: Db) {
  return await db
    .selectFrom('organization_allowed_domains as allowed')
    .innerJoin('organizations', 'organizations.id', 'allowed.organization_id')
    .select(['organizations.id as organization_id', 'organizations.name as organization', 'allowed.domain'])
    .orderBy('organizations.id')
    .orderBy('allowed.domain')
    .execute()
}

/** Those of persons and of service accounts, without what could be used to sign in, and without those that were revoked. */
export async function listAllApiKeys(db: Db) {
  return await db
    .selectFrom('api_keys')
    .leftJoin('users', 'users.id', 'api_keys.user_id')
    .select([
      'api_keys.id',
      'users.email as user',
      'api_keys.service_account_id',
      'api_keys.name',
      'api_keys.permission',
      'api_keys.created_at',
      'api_keys.expires_at',
      'api_keys.last_used_at',
    ])
    .where('api_keys.revoked_at', 'is', null)
    .orderBy('api_keys.id')
    .execute()
}

export async function listAllServiceAccounts(db: Db) {
  return await db
    .selectFrom('service_accounts as account')
    .innerJoin('organizations', 'organizations.id', 'account.organization_id')
    .select([
      'account.id',
      'account.organization_id',
      'organizations.name as organization',
      'account.name',
      'account.role',
      'account.created_at',
    ])
    .orderBy('account.id')
    .execute()
}

/** Releases whose archive says too little, by platform, newest first. */
export async function listUnanalyzedReleases(db: Db) {
  return await db
    .selectFrom('release_analyses as analysis')
    .innerJoin('releases', 'releases.id', 'analysis.release_id')
    .innerJoin('release_artifacts as artifact', 'artifact.id', 'analysis.artifact_id')
    .select([
      'releases.app_id',
      'releases.version',
      'analysis.platform',
      'artifact.arch',
      'analysis.problem',
      'analysis.detail',
      'analysis.analyzed_at',
    ])
    .where('analysis.is_analyzed', '=', false)
    .orderBy('analysis.analyzed_at', 'desc')
    .orderBy('analysis.release_id', 'desc')
    .orderBy('analysis.platform')
    .execute()
}
