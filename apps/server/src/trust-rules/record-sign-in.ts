import { describeServiceAccountId } from '../audit/describe-actor.ts'
import { recordEvent } from '../audit/record-event.ts'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import type { RequestSource } from '../http/actor.ts'
import { listServiceAccountResources } from '../service-accounts/rules.ts'
import type { CiJob } from './ci-job.ts'

/** The sign-in of a CI job is that of the service account which trusts it. */
export async function recordSignIn(
  deps: Pick<Deps, 'clock'>,
  trx: Db,
  input: {
    rule: { id: number; service_account_id: number; service_account_name: string; organization_id: number }
    job: CiJob
    source: RequestSource
  },
): Promise<void> {
  const { rule, job, source } = input
  const { id: ruleId, service_account_id: serviceAccountId, organization_id: organizationId } = rule
  const uid = describeServiceAccountId(serviceAccountId)
  const account = {
    actorId: uid,
    actor: { user: { uid, name: rule.service_account_name, type_id: 4 } },
    unmapped: { actor_source: 'federated' },
  }
  await recordEvent(
    deps,
    trx,
    { by: account, from: source },
    {
      operation: 'service_account.sign_in',
      organizationId,
      resources: listServiceAccountResources({ organizationId, serviceAccountId }),
      details: {
        repository: job.repository,
        workflow_ref: job.workflowRef,
        run_id: job.runId,
        ref: job.ref,
        rule_id: ruleId,
      },
    },
  )
}
