import { randomBytes } from 'node:crypto'
import type { Deps } from '../deps.ts'
import { AppError } from '../errors.ts'
import { requireLiveSession } from '../sessions/actions.ts'
import { findUser } from '../users/queries.ts'
import { deleteSecondFactor, updateLastStep, updatePendingSecret, updateSecondFactorAsOn } from './queries.ts'
import { findStep, secretBytes } from './rules.ts'

const wrongCode = 'code: is wrong or was used already. Wait for the next one.'

/** Makes the secret of a second factor that is on once its first code was entered. */
export async function startSecondFactor(
  deps: Pick<Deps, 'db' | 'clock'>,
  input: { userId: number; sessionId: string },
): Promise<void> {
  const { userId, sessionId } = input
  const secret = randomBytes(secretBytes)
  await deps.db.transaction().execute(async (trx) => {
    await requireLiveSession(trx, { id: sessionId, userId, now: deps.clock() })
    await updatePendingSecret(trx, { userId, secret })
  })
}

/** Turns the second factor on with a code that shows that the person's app has the secret. */
export async function turnOnSecondFactor(
  deps: Pick<Deps, 'db' | 'clock' | 'signInLimits'>,
  input: { userId: number; sessionId: string; code: string },
): Promise<void> {
  const { userId, sessionId, code } = input
  const forgive = await deps.signInLimits.takeCode({ userId })
  const user = await findUser(deps.db, { id: userId })
  const secret = user?.totp_secret ?? undefined
  if (secret === undefined || user?.totp_enabled_at !== null) {
    throw new AppError('invalid_request', 'code: there is no second factor to turn on. Start again.')
  }
  const now = deps.clock()
  const step = findStep(code, { secret, lastStep: null, now })
  if (step === undefined) throw new AppError('invalid_request', wrongCode)
  const isOn = await deps.db.transaction().execute(async (trx) => {
    await requireLiveSession(trx, { id: sessionId, userId, now })
    return await updateSecondFactorAsOn(trx, { userId, secret, step, at: now })
  })
  if (!isOn) throw new AppError('invalid_request', 'code: belongs to another second factor. Start again.')
  await forgive()
}

/** Whether a code is good, which it is once. Counts wrong ones; throws when there were too many. */
export async function acceptCode(
  deps: Pick<Deps, 'db' | 'clock' | 'signInLimits'>,
  input: { userId: number; code: string; pendingId?: string },
): Promise<boolean> {
  const { userId, code } = input
  const forgive = await deps.signInLimits.takeCode(input)
  const user = await findUser(deps.db, { id: userId })
  const secret = user?.totp_secret ?? undefined
  if (secret === undefined || user === undefined || user.totp_enabled_at === null) return false
  const step = findStep(code, { secret, lastStep: user.totp_last_step, now: deps.clock() })
  if (step === undefined || !(await updateLastStep(deps.db, { userId, secret, step }))) return false
  await forgive()
  return true
}

export async function turnOffSecondFactor(
  deps: Pick<Deps, 'db' | 'clock'>,
  input: { userId: number; sessionId: string },
): Promise<void> {
  const { userId, sessionId } = input
  await deps.db.transaction().execute(async (trx) => {
    await requireLiveSession(trx, { id: sessionId, userId, now: deps.clock() })
    await deleteSecondFactor(trx, { userId })
  })
}
