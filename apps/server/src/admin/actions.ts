import { randomBytes } from 'node:crypto'
import { type ApiKeyExpiry, type ApiKeyPermission, CreateApiKeyRequest, type Plan, text } from '@godwit/contract'
import { z } from 'zod'
import { requestAnalyses } from '../analysis/actions.ts'
import { createPersonalApiKey } from '../api-keys/actions.ts'
import { listChainEnds } from '../audit/queries.ts'
import { type ChainProblem, verifyChains } from '../audit/verify-chains.ts'
import { AppError } from '../errors.ts'
import { createJobs } from '../jobs/jobs.ts'
import { replacePassword } from '../passwords/actions.ts'
import { hashPassword } from '../passwords/hash-password.ts'
import { checkNewPassword } from '../passwords/rules.ts'
import { deleteSecondFactor } from '../second-factor/queries.ts'
import { createAccount } from '../users/actions.ts'
import { findUserByEmail } from '../users/queries.ts'
import type { AdminDeps } from './open-admin-deps.ts'
import { updateUserPlan } from './queries.ts'

const Email = z.email().max(320)
const DisplayName = text({ max: 128 })
const KeyName = CreateApiKeyRequest.shape.name

/** 120 random bits in 20 characters that survive copying. */
export function generatePassword(): string {
  return randomBytes(15).toString('base64url')
}

/** The operator vouches for the e-mail. */
export async function createUser(
  deps: AdminDeps,
  input: { email: string; name: string | undefined; password: string },
): Promise<{ userId: number; organizationId: number; email: string }> {
  const email = check(Email, input.email.trim(), 'email')
  const displayName = input.name === undefined ? null : check(DisplayName, input.name, 'name')
  checkNewPassword(input.password, { email })
  const passwordHash = await hashPassword(input.password)
  const account = await deps.db.transaction().execute(
    async (trx) =>
      await createAccount(trx, {
        email,
        displayName,
        jwtIssuer: deps.config.publicUrl,
        passwordHash,
        isEmailVerified: true,
      }),
  )
  if (account === undefined) throw new AppError('invalid_request', `email: ${email} has an account already`)
  return { userId: account.user.id, organizationId: account.organization.id, email }
}

/** Ends all sessions of the account; with `removeSecondFactor` the new password alone is enough to sign in. */
export async function resetPassword(
  deps: AdminDeps,
  input: { email: string; password: string; removeSecondFactor: boolean },
): Promise<void> {
  const { id: userId, email } = await getUserByEmail(deps, input.email)
  checkNewPassword(input.password, { email })
  const passwordHash = await hashPassword(input.password)
  await deps.db.transaction().execute(async (trx) => {
    await replacePassword(trx, { userId, passwordHash, at: deps.clock() })
    if (input.removeSecondFactor) await deleteSecondFactor(trx, { userId })
  })
}

export async function setPlan(deps: AdminDeps, input: { email: string; plan: Plan }): Promise<void> {
  const user = await getUserByEmail(deps, input.email)
  await deps.db.transaction().execute(async (trx) => {
    await updateUserPlan(trx, { id: user.id, plan: input.plan, at: deps.clock() })
  })
}

export async function createApiKeyOfUser(
  deps: AdminDeps,
  input: { email: string; name: string; expiresIn: ApiKeyExpiry; permission: ApiKeyPermission },
) {
  const user = await getUserByEmail(deps, input.email)
  const { expiresIn, permission } = input
  const name = check(KeyName, input.name, 'name')
  return await createPersonalApiKey(deps, { userId: user.id, name, expiresIn, permission })
}

export async function verifyAuditLog(
  deps: Pick<AdminDeps, 'db'>,
): Promise<{ events: number; organizations: number; problems: string[] }> {
  const { events, problems } = await verifyChains(deps.db)
  const organizations = await listChainEnds(deps.db, { organizationId: undefined })
  return { events, organizations: organizations.length, problems: problems.map(describeProblem) }
}

function describeProblem({ organizationId, seq, problem }: ChainProblem): string {
  return seq === undefined
    ? `organization ${organizationId} ${problem}`
    : `organization ${organizationId}, event ${seq} ${problem}`
}

async function getUserByEmail(deps: AdminDeps, email: string): Promise<{ id: number; email: string }> {
  const user = await findUserByEmail(deps.db, { email: email.trim() })
  if (user === undefined) throw new AppError('user_not_found', `no account has the e-mail ${email}`)
  return user
}

function check<T>(schema: z.ZodType<T>, value: string, field: string): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new AppError('invalid_request', `${field}: ${parsed.error.issues[0]?.message}`)
}

/** Counts a release once for each of its platforms. */
export async function requestAnalysesOfAll(deps: AdminDeps, input: { which: 'outdated' | 'all' }): Promise<number> {
  const jobs = await createJobs(deps)
  try {
    return await requestAnalyses({ db: deps.db, jobs }, input)
  } finally {
    await jobs.stop()
  }
}
