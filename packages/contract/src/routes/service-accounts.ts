import { defineRoute } from '../route.ts'
import {
  CreatedServiceAccountKey,
  CreateServiceAccountKeyRequest,
  GetServiceAccountKeysResponse,
} from '../schemas/api-keys.ts'
import {
  CreateServiceAccountRequest,
  CreateTrustRuleRequest,
  GetServiceAccountsResponse,
  GetTrustRulesResponse,
  ServiceAccount,
  TrustRule,
  UpdateServiceAccountRequest,
} from '../schemas/service-accounts.ts'

const tag = 'Service accounts'
const done = { status: 204 } as const
const manage = { by: 'bearer', permission: 'service_accounts.manage', on: 'organization' } as const

export const serviceAccountRoutes = {
  listServiceAccounts: defineRoute({
    method: 'GET',
    path: '/api/v1/organizations/{organizationId}/service-accounts',
    tag,
    summary: 'Service accounts of an organization',
    access: manage,
    success: { status: 200, body: GetServiceAccountsResponse },
  }),
  createServiceAccount: defineRoute({
    method: 'POST',
    path: '/api/v1/organizations/{organizationId}/service-accounts',
    tag,
    summary: 'Create a service account',
    access: manage,
    body: CreateServiceAccountRequest,
    success: { status: 200, body: ServiceAccount },
  }),
  updateServiceAccount: defineRoute({
    method: 'PATCH',
    path: '/api/v1/organizations/{organizationId}/service-accounts/{serviceAccountId}',
    tag,
    summary: 'Change the role of a service account',
    access: manage,
    body: UpdateServiceAccountRequest,
    success: done,
    errors: ['plan_required'],
  }),
  deleteServiceAccount: defineRoute({
    method: 'DELETE',
    path: '/api/v1/organizations/{organizationId}/service-accounts/{serviceAccountId}',
    tag,
    summary: 'Delete a service account with its keys and trust rules',
    access: manage,
    success: done,
  }),
  listServiceAccountKeys: defineRoute({
    method: 'GET',
    path: '/api/v1/organizations/{organizationId}/service-accounts/{serviceAccountId}/keys',
    tag,
    summary: 'Keys of a service account',
    description: 'Newest first, also those that have expired, without those that were revoked.',
    access: manage,
    success: { status: 200, body: GetServiceAccountKeysResponse },
  }),
  createServiceAccountKey: defineRoute({
    method: 'POST',
    path: '/api/v1/organizations/{organizationId}/service-accounts/{serviceAccountId}/keys',
    tag,
    summary: 'Create a key of a service account',
    description: 'The only answer that carries the key.',
    access: manage,
    body: CreateServiceAccountKeyRequest,
    success: { status: 200, body: CreatedServiceAccountKey },
  }),
  revokeServiceAccountKey: defineRoute({
    method: 'DELETE',
    path: '/api/v1/organizations/{organizationId}/service-accounts/{serviceAccountId}/keys/{keyId}',
    tag,
    summary: 'Revoke a key of a service account',
    description: 'The next request with it fails. Revoking it again changes nothing.',
    access: manage,
    success: done,
  }),
  listTrustRules: defineRoute({
    method: 'GET',
    path: '/api/v1/organizations/{organizationId}/service-accounts/{serviceAccountId}/trust-rules',
    tag,
    summary: 'Trust rules of a service account',
    access: manage,
    success: { status: 200, body: GetTrustRulesResponse },
  }),
  createTrustRule: defineRoute({
    method: 'POST',
    path: '/api/v1/organizations/{organizationId}/service-accounts/{serviceAccountId}/trust-rules',
    tag,
    summary: 'Let a CI job sign in as the service account',
    access: manage,
    body: CreateTrustRuleRequest,
    success: { status: 200, body: TrustRule },
    errors: ['plan_required'],
  }),
  deleteTrustRule: defineRoute({
    method: 'DELETE',
    path: '/api/v1/organizations/{organizationId}/service-accounts/{serviceAccountId}/trust-rules/{ruleId}',
    tag,
    summary: 'Delete a trust rule',
    description: 'Tokens that were handed out through it stop working at once.',
    access: manage,
    success: done,
  }),
}
