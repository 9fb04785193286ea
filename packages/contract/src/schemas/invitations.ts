import { z } from 'zod'
import { InvitedRole } from './enums.ts'
import { Email, Int64, Timestamp, text } from './primitives.ts'

const invitationFields = {
  id: Int64,
  organization_id: Int64,
  organization_name: z.string(),
  app_id: z.string().optional().meta({ description: 'Present when the invitation is to this one app only.' }),
  app_name: z.string().optional(),
  email: Email,
  role: InvitedRole.meta({ description: 'Role in the organization, or on the app.' }),
  invited_by: z.string().optional().meta({ description: 'E-mail of who invited, while that account exists.' }),
  created_at: Timestamp,
  expires_at: Timestamp,
}

export const Invitation = z
  .object({
    ...invitationFields,
    url: z.string().optional().meta({
      description:
        'Where the invited person accepts. Only in the answer that creates it, and only when the server sends no mail: whoever has it may use it.',
    }),
  })
  .meta({ id: 'Invitation' })
export type Invitation = z.infer<typeof Invitation>

export const GetInvitationsResponse = z
  .object({ invitations: z.array(Invitation) })
  .meta({ id: 'GetInvitationsResponse' })

export const CreateInvitationRequest = z
  .object({
    email: z.email().max(254),
    role: InvitedRole.meta({ description: 'With `app_id`: `admin` or `developer`.' }),
    app_id: text({ max: 128 }).nullish().meta({ description: 'Invites to this app instead of the organization.' }),
  })
  .refine(({ app_id, role }) => app_id == null || role === 'admin' || role === 'developer', {
    path: ['role'],
    message: 'must be admin or developer for an app',
  })
  .meta({ id: 'CreateInvitationRequest' })

export const AddOrganizationUserRequest = z
  .object({ email: z.email().max(254), role: InvitedRole })
  .meta({ id: 'AddOrganizationUserRequest' })

export const AddOrganizationUserResponse = z
  .object({
    status: z
      .enum(['added', 'invited'])
      .meta({ description: '`invited`: no account exists that has shown that this e-mail is its own.' }),
    invitation: Invitation.optional(),
  })
  .meta({ id: 'AddOrganizationUserResponse' })
