import { z } from 'zod'
import { ServiceAccountRole } from './enums.ts'
import { Int64, Timestamp, text } from './primitives.ts'

export const gitHubActionsIssuer = 'https://token.actions.githubusercontent.com'

export const ServiceAccount = z
  .object({
    id: Int64,
    organization_id: Int64,
    name: z.string(),
    role: ServiceAccountRole,
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'ServiceAccount', description: 'An account of an organization for machines. It is no member.' })
export type ServiceAccount = z.infer<typeof ServiceAccount>

export const GetServiceAccountsResponse = z
  .object({ service_accounts: z.array(ServiceAccount) })
  .meta({ id: 'GetServiceAccountsResponse' })

export const CreateServiceAccountRequest = z
  .object({ name: text({ max: 128 }) })
  .meta({ id: 'CreateServiceAccountRequest', description: 'A new service account is a `developer` until changed.' })

export const UpdateServiceAccountRequest = z
  .object({ role: ServiceAccountRole })
  .meta({ id: 'UpdateServiceAccountRequest' })

const repository = text({ max: 256 })
  .regex(/^[^\s/]+(\/[^\s/]+)+$/, 'must be owner/name')
  .meta({ description: 'Claim `repository` of the token: `owner/name`.' })
const workflow = text({ max: 256 }).meta({
  description:
    'File of the workflow, such as `release.yml` or `.github/workflows/release.yml`: what the claim `workflow_ref` has between repository and `@`.',
})
const environment = text({ max: 256 }).meta({ description: 'Claim `environment`. Absent: any, or none.' })
const refPattern = text({ max: 256 }).meta({
  description:
    'Pattern for the claim `ref`, such as `refs/heads/main` or `refs/tags/v*`. `*` stands for anything but `/`, `**` for anything. Absent: any.',
})

export const TrustRule = z
  .object({
    id: Int64,
    service_account_id: Int64,
    issuer: z.string().meta({ description: 'Issuer of the tokens (claim `iss`).' }),
    repository: z.string(),
    workflow: z.string(),
    environment: z.string().optional(),
    ref_pattern: z.string().optional(),
    created_at: Timestamp,
  })
  .meta({
    id: 'TrustRule',
    description:
      'Lets a CI job sign in as the service account with the OIDC token of its CI (RFC 8693, `POST /token`).',
  })
export type TrustRule = z.infer<typeof TrustRule>

export const GetTrustRulesResponse = z.object({ trust_rules: z.array(TrustRule) }).meta({ id: 'GetTrustRulesResponse' })

export const CreateTrustRuleRequest = z
  .object({
    issuer: z
      .url({ protocol: /^https?$/ })
      .max(512)
      .default(gitHubActionsIssuer)
      .meta({ description: 'GitHub Actions when absent. Others have to be allowed by the operator.' }),
    repository,
    workflow,
    environment: environment.nullish(),
    ref_pattern: refPattern.nullish(),
  })
  .meta({ id: 'CreateTrustRuleRequest' })
