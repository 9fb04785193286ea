import { createServiceAccountClient, type Team } from '../organizations/teams.ts'
import type { TestService } from '../support/test-service.ts'
import type { CiProvider } from '../trust-rules/ci-provider.ts'

/** What a CI job does: `POST /token`. */
export async function signInJob(service: TestService, subjectToken: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${service.baseUrl}/token`, {
    method: 'POST',
    headers: { 'user-agent': 'ci/1', ...headers },
    body: new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
      subject_token: subjectToken,
    }),
  })
  const answer = (await response.json()) as { access_token: string }
  return { status: response.status, token: answer.access_token }
}

/** A service account that trusts the jobs of the provider. */
export async function createTrustedAccount(service: TestService, input: { team: Team; ci: CiProvider }) {
  const { team, ci } = input
  const { id } = await createServiceAccountClient(service, team, 'admin')
  const path = { organizationId: team.organizationId, serviceAccountId: id }
  const body = { issuer: ci.issuer, repository: 'acme/app', workflow: 'release.yml' }
  const rule = await team.owner.api.createTrustRule({ params: path, body })
  return { id, ruleId: rule.id }
}
