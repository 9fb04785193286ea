import { sql } from 'kysely'
import { createApiKey } from './api-keys/actions.ts'
import { type Config, ConfigError } from './config.ts'
import type { Db } from './db/connection.ts'
import { AppError } from './errors.ts'
import { hashPassword } from './passwords/hash-password.ts'
import { checkNewPassword } from './passwords/rules.ts'
import { generateToken } from './random-tokens.ts'
import { createAccount } from './users/actions.ts'
import { hasUsers } from './users/queries.ts'

/** Any number will do, as long as nothing else in this database locks it. */
const bootstrapLock = 7_301_994

export type FirstAccount = {
  email: string
  apiKey: string
  isKeyGenerated: boolean
  hasPassword: boolean
  /** One that was made here, because the operator set neither password nor key. */
  generatedPassword: string | undefined
}

/**
 * On an empty database: the first account, its personal organization and its key, in one transaction. Otherwise
 * undefined. Two servers that start at once make one account.
 */
export async function createFirstAccount(db: Db, config: Config): Promise<FirstAccount | undefined> {
  const { password, apiKey } = config.admin
  return await db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(${bootstrapLock})`.execute(trx)
    if (await hasUsers(trx)) return undefined
    if (password !== undefined) requireGoodPassword(password, config.admin.email)
    const generatedPassword = password === undefined && apiKey === undefined ? generateToken().slice(0, 20) : undefined
    const chosen = password ?? generatedPassword
    const account = await createAccount(trx, {
      email: config.admin.email,
      displayName: null,
      jwtIssuer: config.publicUrl,
      passwordHash: chosen === undefined ? undefined : await hashPassword(chosen),
      isEmailVerified: true,
    })
    if (account === undefined) return undefined
    const { key } = await createApiKey(trx, {
      holder: { userId: account.user.id },
      name: 'first key',
      permission: 'full',
      expiresAt: null,
      ...(apiKey === undefined ? {} : { key: apiKey }),
    })
    return {
      email: account.user.email,
      apiKey: key,
      isKeyGenerated: apiKey === undefined,
      hasPassword: account.user.password_hash !== null,
      generatedPassword,
    }
  })
}

function requireGoodPassword(password: string, email: string): void {
  try {
    checkNewPassword(password, { email })
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    throw new ConfigError(
      `This setting is wrong:\n  GODWIT_ADMIN_PASSWORD: ${error.details?.replace(/^password: /, '')}`,
    )
  }
}
