import { z } from 'zod'
import { InvitedRole, OrganizationType, Role } from './enums.ts'
import { Email, Int64, Timestamp, text } from './primitives.ts'

export const PublicUser = z
  .object({ id: Int64, email: Email, display_name: z.string().optional() })
  .meta({ id: 'PublicUser' })
export type PublicUser = z.infer<typeof PublicUser>

export const PrivateUser = z
  .object({
    id: Int64,
    email: Email.meta({ description: 'As given at sign-up.' }),
    display_name: z.string().optional(),
    payment_customer_id: z.string().optional().meta({ description: 'Customer id at the payment provider, if any.' }),
    stripe_customer_id: z.string().optional().meta({ description: 'The name the public clients have for it.' }),
    has_active_subscription: z.boolean().meta({ description: 'Whether the plan is a paid one.' }),
    jwt_issuer: z.string().meta({ description: 'Issuer of the token that created the account.' }),
    patch_overage_limit: Int64.optional().meta({
      description: 'Patch installs beyond the plan that the user agreed to pay for.',
    }),
  })
  .meta({ id: 'PrivateUser', description: 'The own account; nobody else sees it in this form.' })
export type PrivateUser = z.infer<typeof PrivateUser>

export const CreateUserRequest = z
  .object({ name: text({ max: 128 }).nullish().meta({ description: 'Display name.' }) })
  .meta({ id: 'CreateUserRequest', description: 'The e-mail comes from the token.' })

export const UpdateCurrentUserRequest = z
  .object({
    display_name: text({ max: 128 }).nullish().meta({ description: 'null removes it.' }),
    patch_overage_limit: Int64.nullish().meta({ description: 'null removes it.' }),
  })
  .meta({ id: 'UpdateCurrentUserRequest', description: 'Fields that are absent stay as they are.' })

export const Organization = z
  .object({
    id: Int64,
    name: z.string(),
    organization_type: OrganizationType,
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'Organization' })
export type Organization = z.infer<typeof Organization>

export const OrganizationMembership = z
  .object({ organization: Organization, role: Role.meta({ description: "The caller's role." }) })
  .meta({ id: 'OrganizationMembership' })
export type OrganizationMembership = z.infer<typeof OrganizationMembership>

export const OrganizationUser = z.object({ user: PublicUser, role: Role }).meta({ id: 'OrganizationUser' })
export type OrganizationUser = z.infer<typeof OrganizationUser>

export const GetOrganizationsResponse = z
  .object({ organizations: z.array(OrganizationMembership) })
  .meta({ id: 'GetOrganizationsResponse' })

export const GetOrganizationUsersResponse = z
  .object({ users: z.array(OrganizationUser) })
  .meta({ id: 'GetOrganizationUsersResponse' })

const organizationName = text({ max: 128 })

export const CreateOrganizationRequest = z.object({ name: organizationName }).meta({ id: 'CreateOrganizationRequest' })

export const UpdateOrganizationRequest = z.object({ name: organizationName }).meta({ id: 'UpdateOrganizationRequest' })

export const TransferOwnershipRequest = z
  .object({ user_id: Int64.meta({ description: 'A member. The previous owner becomes an admin.' }) })
  .meta({ id: 'TransferOwnershipRequest' })

export const UpdateOrganizationUserRequest = z
  .object({ role: InvitedRole })
  .meta({ id: 'UpdateOrganizationUserRequest' })
