import type { Db } from '../db/connection.ts'
import type { CiJob } from './ci-job.ts'
import type { TrustCondition } from './rules.ts'

export async function listTrustRules(db: Db, input: { serviceAccountId: number }) {
  return await db
    .selectFrom('trust_rules')
    .selectAll()
    .where('service_account_id', '=', input.serviceAccountId)
    .orderBy('id')
    .execute()
}

/** A rule that says the same. */
export async function findEqualTrustRule(db: Db, input: { serviceAccountId: number; condition: TrustCondition }) {
  const { issuer, repository, workflow, environment, ref_pattern } = input.condition
  return await db
    .selectFrom('trust_rules')
    .selectAll()
    .where('service_account_id', '=', input.serviceAccountId)
    .where('issuer', '=', issuer)
    .where('repository', '=', repository)
    .where('workflow', '=', workflow)
    .where('environment', 'is not distinct from', environment)
    .where('ref_pattern', 'is not distinct from', ref_pattern)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
}

export async function insertTrustRule(
  db: Db,
  input: { serviceAccountId: number; condition: TrustCondition; createdAt: Date },
) {
  return await db
    .insertInto('trust_rules')
    .values({ ...input.condition, service_account_id: input.serviceAccountId, created_at: input.createdAt })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** What it said; undefined when there was none. Its sessions go with it. */
export async function deleteTrustRule(
  db: Db,
  input: { id: number; serviceAccountId: number },
): Promise<TrustCondition | undefined> {
  return await db
    .deleteFrom('trust_rules')
    .where('id', '=', input.id)
    .where('service_account_id', '=', input.serviceAccountId)
    .returning(['issuer', 'repository', 'workflow', 'environment', 'ref_pattern'])
    .executeTakeFirst()
}

/** The rules for jobs of a repository, whatever else they demand. Those of organizations that are being deleted are gone. */
export async function listRulesOfRepository(db: Db, input: { issuer: string; repository: string }) {
  return await db
    .selectFrom('trust_rules as rule')
    .innerJoin('service_accounts as account', 'account.id', 'rule.service_account_id')
    .innerJoin('organizations', 'organizations.id', 'account.organization_id')
    .selectAll('rule')
    .select(['account.organization_id', 'account.name as service_account_name'])
    .where('rule.issuer', '=', input.issuer)
    .where((eb) => eb(eb.fn<string>('lower', ['rule.repository']), '=', input.repository.toLowerCase()))
    .where('organizations.deletion_started_at', 'is', null)
    .orderBy('rule.id')
    .execute()
}

/** False when the token that the job came with was used before. */
export async function insertFederatedSession(
  db: Db,
  input: { id: string; trustRuleId: number; tokenId: string; job: CiJob; createdAt: Date; expiresAt: Date },
): Promise<boolean> {
  const { job } = input
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('federated_sessions')
    .values({
      id: input.id,
      trust_rule_id: input.trustRuleId,
      issuer: job.issuer,
      token_id: input.tokenId,
      repository: job.repository,
      workflow_ref: job.workflowRef,
      run_id: job.runId ?? null,
      ref: job.ref ?? null,
      environment: job.environment ?? null,
      created_at: input.createdAt,
      expires_at: input.expiresAt,
    })
    .onConflict((conflict) => conflict.constraint('federated_sessions_token_key').doNothing())
    .executeTakeFirst()
  return (numInsertedOrUpdatedRows ?? 0n) > 0n
}

/** The sign-in of a CI job, with its service account. It ends with its rule. */
export async function findLiveFederatedSession(db: Db, input: { id: string; now: Date }) {
  return await db
    .selectFrom('federated_sessions as session')
    .innerJoin('trust_rules as rule', 'rule.id', 'session.trust_rule_id')
    .innerJoin('service_accounts as account', 'account.id', 'rule.service_account_id')
    .selectAll('session')
    .select([
      'rule.id as trust_rule_id',
      'account.id as service_account_id',
      'account.organization_id',
      'account.role',
      'account.name',
    ])
    .where('session.id', '=', input.id)
    .where('session.expires_at', '>', input.now)
    .executeTakeFirst()
}
