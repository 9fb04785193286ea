import type { AppCollaboratorRole } from '@godwit/contract'
import { lockAppAndAuthorize } from '../apps/lock-app.ts'
import { recordAppEvent } from '../audit/record-event.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
import { updatePendingInvitationAccepted } from '../invitations/queries.ts'
import { requireAllowedDomain } from '../organizations/allowed-domains.ts'
import { requireOrganizationFeature } from '../plans/actions.ts'
import { findUserByEmail, lockUserAgainstDeletion } from '../users/queries.ts'
import { deleteCollaborator, findCollaborator, insertCollaborator, updateCollaborator } from './queries.ts'

/** The least that lets somebody publish; more is granted by name. */
const initialRole: AppCollaboratorRole = 'developer'

const permission = 'collaborators.manage'

/** Only an account that has shown that the e-mail is its own: an e-mail alone must not give rights. */
export async function addCollaborator(
  deps: Deps,
  actor: Actor,
  input: { appId: string; email: string },
): Promise<void> {
  const { appId, email } = input
  await deps.db.transaction().execute(async (trx) => {
    const organizationId = await lockAppAndAuthorize(deps, trx, { actor, permission, appId })
    const found = await findUserByEmail(trx, { email })
    const user = found && (await lockUserAgainstDeletion(trx, { id: found.id }))
    if (user === undefined) throw new AppError('user_not_found', 'email: no account has it')
    if ((await findCollaborator(trx, { appId, userId: user.id })) !== undefined) return
    if (user.email_verified_at === null) throw new AppError('user_not_found', 'email: no account has it')
    await requireOrganizationFeature(deps, trx, { organizationId, feature: 'collaborators' })
    await requireAllowedDomain(trx, { organizationId, email })
    await insertCollaborator(trx, { appId, userId: user.id, role: initialRole })
    await updatePendingInvitationAccepted(trx, { organizationId, appId, email, userId: user.id })
    await recordAppEvent(deps, trx, actor, {
      operation: 'app_collaborator.add',
      ...describeCollaborator(appId, user.id),
      details: { email: user.email, role: initialRole },
    })
  })
}

export async function changeCollaboratorRole(
  deps: Deps,
  actor: Actor,
  input: { appId: string; userId: number; role: AppCollaboratorRole },
): Promise<void> {
  const { appId, userId, role } = input
  await deps.db.transaction().execute(async (trx) => {
    await lockAppAndAuthorize(deps, trx, { actor, permission, appId })
    const collaborator = await findCollaborator(trx, input)
    if (collaborator?.role === role) return
    if (collaborator === undefined || !(await updateCollaborator(trx, input))) throw new AppError('not_found')
    await recordAppEvent(deps, trx, actor, {
      operation: 'app_collaborator.role_update',
      ...describeCollaborator(appId, userId),
      details: { email: collaborator.email, previous_role: collaborator.role, role },
    })
  })
}

export async function removeCollaborator(
  deps: Deps,
  actor: Actor,
  input: { appId: string; userId: number },
): Promise<void> {
  const { appId, userId } = input
  await deps.db.transaction().execute(async (trx) => {
    await lockAppAndAuthorize(deps, trx, { actor, permission, appId })
    const collaborator = await findCollaborator(trx, input)
    if (collaborator === undefined || !(await deleteCollaborator(trx, input))) throw new AppError('not_found')
    await recordAppEvent(deps, trx, actor, {
      operation: 'app_collaborator.remove',
      ...describeCollaborator(appId, userId),
      details: { email: collaborator.email, previous_role: collaborator.role },
    })
  })
}

function describeCollaborator(appId: string, userId: number) {
  const resources = [
    { type: 'user' as const, uid: userId },
    { type: 'app' as const, uid: appId },
  ]
  return { appId, resources }
}
