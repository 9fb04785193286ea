import { defineRoute } from '../route.ts'
import { CreateUserRequest, PrivateUser } from '../schemas/people.ts'

const tag = 'Users'

export const userRoutes = {
  createUser: defineRoute({
    method: 'POST',
    path: '/api/v1/users',
    tag,
    summary: 'Create the account of the caller',
    description: 'Answers the account that exists when there is one, so that it may be retried.',
    access: { by: 'bearer', permission: 'account.manage', on: 'caller' },
    body: CreateUserRequest,
    success: { status: 200, body: PrivateUser },
  }),
  getCurrentUser: defineRoute({
    method: 'GET',
    path: '/api/v1/users/me',
    tag,
    summary: 'The account of the caller',
    description: '404 when the token is good but no account belongs to it.',
    access: { by: 'bearer', permission: 'account.manage', on: 'caller' },
    success: { status: 200, body: PrivateUser },
    errors: ['not_found'],
  }),
}
