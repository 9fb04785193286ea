import type { Db } from '../db/connection.ts'

/** Leaves a second factor that is on as it is. */
export async function updatePendingSecret(db: Db, input: { userId: number; secret: Buffer }): Promise<void> {
  await db
    .updateTable('users')
    .set({ totp_secret: input.secret, totp_last_step: null })
    .where('id', '=', input.userId)
    .where('totp_enabled_at', 'is', null)
    .execute()
}

/** Turns the second factor on when the secret is still the one that the code was checked with. */
export async function updateSecondFactorAsOn(
  db: Db,
  input: { userId: number; secret: Buffer; step: number; at: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('users')
    .set({ totp_enabled_at: input.at, totp_last_step: input.step })
    .where('id', '=', input.userId)
    .where('totp_secret', '=', input.secret)
    .where('totp_enabled_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** True for one caller only: of two that show the same code at the same time one is refused. */
export async function updateLastStep(
  db: Db,
  input: { userId: number; secret: Buffer; step: number },
): Promise<boolean> {
  const { userId, secret, step } = input
  const { numUpdatedRows } = await db
    .updateTable('users')
    .set({ totp_last_step: step })
    .where('id', '=', userId)
    .where('totp_secret', '=', secret)
    .where('totp_enabled_at', 'is not', null)
    .where((eb) => eb.or([eb('totp_last_step', 'is', null), eb('totp_last_step', '<', step)]))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function deleteSecondFactor(db: Db, input: { userId: number }): Promise<void> {
  await db
    .updateTable('users')
    .set({ totp_secret: null, totp_enabled_at: null, totp_last_step: null })
    .where('id', '=', input.userId)
    .execute()
}
