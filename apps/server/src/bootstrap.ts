import { sql } from 'kysely'
import { createApiKey } from './api-keys/actions.ts'
import type { Config } from './config.ts'
import type { Db } from './db/connection.ts'
import { createAccount } from './users/actions.ts'
import { hasUsers } from './users/queries.ts'

/** Any number will do, as long as nothing else in this database locks it. */
const bootstrapLock = 7_301_994

export type FirstAccount = { email: string; apiKey: string; isKeyGenerated: boolean }

/**
 * On an empty database: the first account, its personal organization and its key, in one transaction. Otherwise
 * undefined. Two servers that start at once make one account.
 */
export async function createFirstAccount(db: Db, config: Config): Promise<FirstAccount | undefined> {
  return await db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(${bootstrapLock})`.execute(trx)
    if (await hasUsers(trx)) return undefined
    const account = await createAccount(trx, {
      email: config.admin.email,
      displayName: null,
      jwtIssuer: config.publicUrl,
      password: config.admin.password,
    })
    if (account === undefined) return undefined
    const { key } = await createApiKey(trx, {
      userId: account.user.id,
      name: 'first key',
      permission: 'full',
      expiresAt: null,
      ...(config.admin.apiKey === undefined ? {} : { key: config.admin.apiKey }),
    })
    return { email: account.user.email, apiKey: key, isKeyGenerated: config.admin.apiKey === undefined }
  })
}
