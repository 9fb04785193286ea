import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ApiKeyPermission } from '@godwit/contract'
import { type Client, createClient } from '@godwit/sdk'
import pino, { type Logger } from 'pino'
import { createApiKey } from '../../src/api-keys/actions.ts'
import { buildApp } from '../../src/app.ts'
import { type Config, readConfig } from '../../src/config.ts'
import { createDeps } from '../../src/create-deps.ts'
import type { Deps } from '../../src/deps.ts'
import { findFreePort } from '../../src/embedded-postgres/launch.ts'
import { createAccount } from '../../src/users/actions.ts'
import { findAuditProblems } from './ocsf.ts'
import { createTestDatabase, type TestDatabase } from './test-database.ts'

export type TestAccount = {
  userId: number
  email: string
  /** The personal organization. */
  organizationId: number
  apiKey: string
  api: Client
}

export type TestService = {
  deps: Deps
  baseUrl: string
  connectionString: string
  dataDir: string
  /** A client with any token, or none. */
  client: (token?: string, headers?: Record<string, string>) => Client
  createAccount: (options?: { email?: string; permission?: ApiKeyPermission }) => Promise<TestAccount>
  /** Stops and starts again on the same database, folder and port, as a restart of the process does. */
  restart: () => Promise<void>
  stop: () => Promise<void>
}

export type TestServiceOptions = {
  config?: Partial<Config>
  clock?: () => Date
  log?: Logger
  /** What a backup was restored into, instead of a new database and folder. Goes with the service. */
  restored?: { database: TestDatabase; dataDir: string }
}

/** The whole service on a database, a folder and a port of its own. */
export async function createTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const database = options.restored?.database ?? (await createTestDatabase())
  const dataDir = options.restored?.dataDir ?? (await mkdtemp(join(tmpdir(), 'godwit-test-data-')))
  const log = options.log ?? pino({ level: 'silent' })
  const { connectionString } = database
  // The port is part of every URL that the service signs, so it must be known before the service starts.
  const port = await findFreePort()
  const baseUrl = `http://127.0.0.1:${port}`
  const config: Config = {
    ...readConfig({ GODWIT_DATA_DIR: dataDir, GODWIT_PUBLIC_URL: baseUrl, GODWIT_RATE_LIMIT: 'off' }),
    ...options.config,
  }
  const start = async () => {
    const clock = options.clock === undefined ? {} : { clock: options.clock }
    const { deps, close } = await createDeps({ config, log, connectionString, ...clock })
    const app = await buildApp(deps)
    await app.http.listen({ port, host: '127.0.0.1' })
    return { deps, close, app }
  }
  let running = await start()
  const shutDown = async () => {
    await running.app.http.close()
    await running.close()
  }
  const client = (token?: string, headers?: Record<string, string>) =>
    createClient({ baseUrl, ...(token === undefined ? {} : { token }), ...(headers === undefined ? {} : { headers }) })
  return {
    get deps() {
      return running.deps
    },
    baseUrl,
    connectionString,
    dataDir,
    client,
    createAccount: async (accountOptions) => {
      const account = await insertTestAccount(running.deps, accountOptions)
      return { ...account, api: client(account.apiKey) }
    },
    restart: async () => {
      await shutDown()
      running = await start()
    },
    stop: async () => {
      await shutDown()
      const problems = await findAuditProblems(connectionString)
      await database.drop()
      await rm(dataDir, { recursive: true, force: true })
      // Here, so that every event which any test causes is looked at.
      if (problems.length > 0) throw new Error(`the audit log is wrong:\n${problems.slice(0, 10).join('\n')}`)
    },
  }
}

let accounts = 0

async function insertTestAccount(deps: Deps, options: { email?: string; permission?: ApiKeyPermission } = {}) {
  accounts += 1
  const email = options.email ?? `person-${accounts}@example.com`
  const account = await createAccount(deps.db, {
    email,
    displayName: null,
    jwtIssuer: deps.config.publicUrl,
    isEmailVerified: true,
  })
  if (account === undefined) throw new Error(`${email} has an account already`)
  const { key } = await createApiKey(deps.db, {
    holder: { userId: account.user.id },
    name: 'test',
    permission: options.permission ?? 'full',
    expiresAt: null,
  })
  return { userId: account.user.id, email, organizationId: account.organization.id, apiKey: key }
}
