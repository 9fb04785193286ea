import type { AppCollaboratorRole } from '@godwit/contract'
import type { Db } from '../db/connection.ts'

export async function listCollaborators(db: Db, input: { appId: string }) {
  return await db
    .selectFrom('app_collaborators')
    .innerJoin('users', 'users.id', 'app_collaborators.user_id')
    .select(['app_collaborators.user_id', 'users.email', 'users.display_name', 'app_collaborators.role'])
    .where('app_collaborators.app_id', '=', input.appId)
    .orderBy('app_collaborators.user_id')
    .execute()
}

export async function findCollaborator(db: Db, input: { appId: string; userId: number }) {
  return await db
    .selectFrom('app_collaborators')
    .innerJoin('users', 'users.id', 'app_collaborators.user_id')
    .select(['app_collaborators.user_id', 'app_collaborators.role', 'users.email'])
    .where('app_collaborators.app_id', '=', input.appId)
    .where('app_collaborators.user_id', '=', input.userId)
    .executeTakeFirst()
}

/** Leaves an existing collaborator as it is. */
export async function insertCollaborator(
  db: Db,
  input: { appId: string; userId: number; role: AppCollaboratorRole },
): Promise<void> {
  await db
    .insertInto('app_collaborators')
    .values({ app_id: input.appId, user_id: input.userId, role: input.role })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Whether there was one. */
export async function updateCollaborator(
  db: Db,
  input: { appId: string; userId: number; role: AppCollaboratorRole },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('app_collaborators')
    .set({ role: input.role })
    .where('app_id', '=', input.appId)
    .where('user_id', '=', input.userId)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Whether there was one. */
export async function deleteCollaborator(db: Db, input: { appId: string; userId: number }): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('app_collaborators')
    .where('app_id', '=', input.appId)
    .where('user_id', '=', input.userId)
    .executeTakeFirst()
  return numDeletedRows > 0n
}
