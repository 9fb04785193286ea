import type { AppCollaboratorRole } from '@godwit/contract'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { findUserByEmail } from '../users/queries.ts'
import { deleteCollaborator, insertCollaborator, updateCollaborator } from './queries.ts'

/** The least that lets somebody publish; more is granted by name. */
const initialRole: AppCollaboratorRole = 'developer'

export async function addCollaborator(deps: Deps, input: { appId: string; email: string }): Promise<void> {
  const user = await findUserByEmail(deps.db, { email: input.email })
  if (user === undefined) throw new AppError('user_not_found', 'email: no account has it')
  await insertCollaborator(deps.db, { appId: input.appId, userId: user.id, role: initialRole })
}

export async function changeCollaboratorRole(
  deps: Deps,
  input: { appId: string; userId: number; role: AppCollaboratorRole },
): Promise<void> {
  if (!(await updateCollaborator(deps.db, input))) throw new AppError('not_found')
}

export async function removeCollaborator(deps: Deps, input: { appId: string; userId: number }): Promise<void> {
  if (!(await deleteCollaborator(deps.db, input))) throw new AppError('not_found')
}
