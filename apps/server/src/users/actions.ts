import { hash as hashPassword } from '@node-rs/argon2'
import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../http/actor.ts'
import { insertMember, insertOrganization } from '../organizations/queries.ts'
import { findUser, findUserByEmail, insertUser } from './queries.ts'

/**
 * Creates an account with its personal organization, in the caller's transaction. undefined when the e-mail is taken.
 * The password is stored as an argon2id hash (RFC 9106).
 */
export async function createAccount(
  db: Db,
  input: { email: string; displayName: string | null; jwtIssuer: string; password?: string | undefined },
) {
  const passwordHash = input.password === undefined ? null : await hashPassword(input.password)
  const user = await insertUser(db, { ...input, passwordHash })
  if (user === undefined) return undefined
  const organization = await insertOrganization(db, {
    name: input.displayName ?? input.email,
    organizationType: 'personal',
  })
  await insertMember(db, { organizationId: organization.id, userId: user.id, role: 'owner' })
  return { user, organization }
}

/** The account of the caller, created when there is none. Answers the existing one when repeated. */
export async function signUp(deps: Deps, actor: Actor, input: { displayName: string | null }) {
  if (actor.userId !== undefined) return await getCurrentUser(deps, actor)
  const account = await deps.db
    .transaction()
    .execute((trx) =>
      createAccount(trx, { email: actor.email, displayName: input.displayName, jwtIssuer: actor.issuer }),
    )
  const id = account?.user.id ?? (await findUserByEmail(deps.db, { email: actor.email }))?.id
  return await getCurrentUser(deps, { ...actor, userId: id })
}

export async function getCurrentUser(deps: Deps, actor: Actor) {
  const user = actor.userId === undefined ? undefined : await findUser(deps.db, { id: actor.userId })
  if (user === undefined) throw new AppError('not_found', 'No account belongs to this credential.')
  return user
}
