import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import { registerAccountPages } from './account-pages.ts'
import { registerCodePages } from './code-pages.ts'
import { registerInvitationPages } from './invitation-pages.ts'
import { registerPasswordResetPages } from './password-reset-pages.ts'
import { preparePages } from './scope.ts'
import { registerSecondFactorPages } from './second-factor-pages.ts'
import { registerSignInForm } from './sign-in-pages.ts'

/** The pages of sign-in and of one's own account. Pages of other features are registered in the same scope, after it. */
export async function registerSignInPages(app: FastifyInstance, deps: Deps): Promise<void> {
  await preparePages(app, deps)
  registerSignInForm(app, deps)
  registerCodePages(app, deps)
  registerAccountPages(app, deps)
  registerSecondFactorPages(app, deps)
  registerPasswordResetPages(app, deps)
  registerInvitationPages(app, deps)
}
