import { defineRoute } from '../route.ts'
import { CreateApiKeyRequest, CreatedApiKey, GetApiKeysResponse } from '../schemas/api-keys.ts'
import { GetInvitationsResponse } from '../schemas/invitations.ts'
import { CreateUserRequest, PrivateUser, UpdateCurrentUserRequest } from '../schemas/people.ts'
import { PlanDescription } from '../schemas/plans.ts'

const tag = 'Users'
const done = { status: 204 } as const
/** What a person does with the own account is in no organization's log (spec, Events, rule 8). */
const ownAccountReason = 'the own account'
const ownAccount = { by: 'bearer', permission: 'account.manage', on: 'caller' } as const

export const userRoutes = {
  createUser: defineRoute({
    method: 'POST',
    path: '/api/v1/users',
    tag,
    summary: 'Create the account of the caller',
    description:
      'Answers the account that exists when there is one, so that it may be retried. 403 when the server takes only people who were invited.',
    access: ownAccount,
    body: CreateUserRequest,
    success: { status: 200, body: PrivateUser },
    audit: { none: ownAccountReason },
  }),
  getCurrentUser: defineRoute({
    method: 'GET',
    path: '/api/v1/users/me',
    tag,
    summary: 'The account of the caller',
    description: '404 when the token is good but no account belongs to it.',
    access: ownAccount,
    success: { status: 200, body: PrivateUser },
    errors: ['not_found'],
  }),
  updateCurrentUser: defineRoute({
    method: 'PATCH',
    path: '/api/v1/users/me',
    tag,
    summary: 'Change the account of the caller',
    access: ownAccount,
    body: UpdateCurrentUserRequest,
    success: { status: 200, body: PrivateUser },
    errors: ['not_found'],
    audit: { none: ownAccountReason },
  }),
  deleteCurrentUser: defineRoute({
    method: 'DELETE',
    path: '/api/v1/users/me',
    tag,
    summary: 'Delete the account of the caller',
    description: 'With it go its personal organization with all apps, its memberships, keys and sessions.',
    access: ownAccount,
    success: done,
    errors: ['not_found', 'owns_team_organization'],
    audit: { none: ownAccountReason },
  }),
  listApiKeys: defineRoute({
    method: 'GET',
    path: '/api/v1/users/me/api-keys',
    tag,
    summary: 'API keys of the caller',
    description: 'Newest first, also those that have expired, without those that were revoked.',
    access: ownAccount,
    success: { status: 200, body: GetApiKeysResponse },
    errors: ['not_found'],
  }),
  createApiKey: defineRoute({
    method: 'POST',
    path: '/api/v1/users/me/api-keys',
    tag,
    summary: 'Create an API key',
    description: 'The only answer that carries the key.',
    access: ownAccount,
    body: CreateApiKeyRequest,
    success: { status: 200, body: CreatedApiKey },
    errors: ['not_found'],
    audit: { none: 'a key of one person' },
  }),
  revokeApiKey: defineRoute({
    method: 'DELETE',
    path: '/api/v1/users/me/api-keys/{keyId}',
    tag,
    summary: 'Revoke an API key',
    description: 'The next request with it fails. Revoking it again changes nothing.',
    access: ownAccount,
    success: done,
    errors: ['not_found'],
    audit: { none: 'a key of one person' },
  }),
  getPlan: defineRoute({
    method: 'GET',
    path: '/api/v1/plan',
    tag,
    summary: 'The plan of the caller',
    access: ownAccount,
    success: { status: 200, body: PlanDescription },
    errors: ['not_found'],
  }),
  listReceivedInvitations: defineRoute({
    method: 'GET',
    path: '/api/v1/users/me/invitations',
    tag,
    summary: 'Invitations that the caller may accept',
    description: 'Those to its e-mail, once it is known that the e-mail is its own.',
    access: ownAccount,
    success: { status: 200, body: GetInvitationsResponse },
    errors: ['not_found'],
  }),
  acceptInvitation: defineRoute({
    method: 'POST',
    path: '/api/v1/invitations/{invitationId}/accept',
    tag,
    summary: 'Accept an invitation',
    description: 'Accepting it again changes nothing.',
    access: ownAccount,
    success: done,
    errors: ['not_found', 'domain_not_allowed'],
    audit: ['invitation.accept', 'org_member.add', 'app_collaborator.add'],
  }),
  declineInvitation: defineRoute({
    method: 'POST',
    path: '/api/v1/invitations/{invitationId}/decline',
    tag,
    summary: 'Decline an invitation',
    description: 'Declining it again changes nothing.',
    access: ownAccount,
    success: done,
    errors: ['not_found'],
    audit: ['invitation.decline'],
  }),
}
