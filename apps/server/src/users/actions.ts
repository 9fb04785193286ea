import type { Db } from '../db/connection.ts'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { type Actor, requirePerson } from '../http/actor.ts'
import { signUpWithIdentity } from '../identities/actions.ts'
import { startDeletion } from '../organizations/actions.ts'
import { insertMember, insertOrganization, lockOrganization } from '../organizations/queries.ts'
import { deleteUser, findUser, insertUser, listOwnedOrganizations, lockUser, updateUser } from './queries.ts'

/**
 * Creates an account with its personal organization, in the caller's transaction. undefined when the e-mail is taken.
 * The password is stored as an argon2id hash (RFC 9106).
 */
export async function createAccount(
  db: Db,
  input: {
    email: string
    displayName: string | null
    jwtIssuer: string
    /** Made before the transaction: hashing takes a while, and would hold its connection. */
    passwordHash?: string | undefined
    /** Whether an identity provider, a mailed link or the operator vouches for the e-mail. */
    isEmailVerified: boolean
  },
) {
  const emailVerifiedAt = input.isEmailVerified ? new Date() : null
  const user = await insertUser(db, { ...input, passwordHash: input.passwordHash ?? null, emailVerifiedAt })
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
  if (actor.kind !== 'newcomer') return await getCurrentUser(deps, actor)
  const { id } = await signUpWithIdentity(
    deps,
    { issuer: actor.issuer, subject: actor.subject, verifiedEmail: actor.email },
    input,
  )
  return await getUser(deps, id)
}

export async function getCurrentUser(deps: Deps, actor: Actor) {
  return await getUser(deps, requirePerson(actor).userId)
}

export async function updateCurrentUser(
  deps: Deps,
  actor: Actor,
  input: { displayName: string | null | undefined; patchOverageLimit: number | null | undefined },
) {
  const { userId } = requirePerson(actor)
  const user = await updateUser(deps.db, { id: userId, ...input, at: deps.clock() })
  if (user === undefined) throw new AppError('not_found')
  return user
}

/**
 * The account is gone at once, and its personal organization with it for everybody; a job removes what is below that.
 * Changes to a person's own account are in no organization's audit log (spec, Events, rule 8): also not in those of the
 * organizations that it was a member of.
 */
export async function deleteCurrentUser(deps: Deps, actor: Actor): Promise<void> {
  const { userId } = requirePerson(actor)
  await deps.db.transaction().execute(async (trx) => {
    const [personal] = await listOwnedOrganizations(trx, { userId })
    // Organizations are locked before accounts, here as everywhere.
    if (personal !== undefined) await lockOrganization(trx, { organizationId: personal.id })
    if (!(await lockUser(trx, { id: userId }))) throw new AppError('not_found')
    const owned = await listOwnedOrganizations(trx, { userId })
    const teams = owned.filter(({ organization_type }) => organization_type === 'team')
    if (teams.length > 0) throw new AppError('owns_team_organization', teams.map(({ name }) => name).join(', '))
    for (const { id } of owned) await startDeletion(deps, trx, { organizationId: id })
    await deleteUser(trx, { id: userId })
  })
}

async function getUser(deps: Deps, id: number) {
  const user = await findUser(deps.db, { id })
  if (user === undefined) throw new AppError('not_found', 'No account belongs to this credential.')
  return user
}
