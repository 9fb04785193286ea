import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type DatabaseProxy, startDatabaseProxy } from './database-proxy.ts'
import { queryValue, type ReplicatedPostgres, startReplicatedPostgres } from './replicated-postgres.ts'
import { createTestService, type TestAccount, type TestService } from './test-service.ts'

/** A service with a read replica, both behind networks that can be broken. */
export type ReplicatedService = {
  postgres: ReplicatedPostgres
  primary: DatabaseProxy
  replica: DatabaseProxy
  service: TestService
  owner: TestAccount
  readMetric: (name: string) => () => Promise<number | undefined>
  /** Until it is used again. */
  waitUntilUp: () => Promise<void>
  /** Keeps it as it is now: it goes on answering. */
  whileReplicaLags: (run: () => Promise<void>) => Promise<void>
  /** After each test. */
  mend: () => Promise<void>
  stop: () => Promise<void>
}

export async function startReplicatedService(): Promise<ReplicatedService> {
  await using started = new AsyncDisposableStack()
  const postgres = started.adopt(await startReplicatedPostgres(), ({ stop }) => stop())
  const primary = started.adopt(await startDatabaseProxy(postgres.primaryUrl), ({ stop }) => stop())
  const replica = started.adopt(await startDatabaseProxy(postgres.replicaUrl), ({ stop }) => stop())
  const database = { connectionString: primary.connectionString, name: 'godwit', drop: async () => undefined }
  const dataDir = await mkdtemp(join(tmpdir(), 'godwit-test-data-'))
  const service = await createTestService({
    restored: { database, dataDir },
    config: { databaseReplicaUrl: replica.connectionString },
  })
  started.defer(() => service.stop())
  const owner = await service.createAccount()
  const readMetric = (name: string) => async () =>
    (await service.deps.registry.getSingleMetric(name)?.get())?.values[0]?.value
  const waitFor = (name: string) => expect.poll(readMetric(name), { timeout: 15_000, interval: 50 }).toBe(1)
  const all = started.move()
  return {
    postgres,
    primary,
    replica,
    service,
    owner,
    readMetric,
    waitUntilUp: () => waitFor('godwit_replica_up'),
    whileReplicaLags: async (run) => {
      await queryValue(postgres.replicaUrl, 'select pg_wal_replay_pause()')
      await run().finally(() => queryValue(postgres.replicaUrl, 'select pg_wal_replay_resume()'))
    },
    mend: async () => {
      primary.setMode('pass')
      replica.setMode('pass')
      await waitFor('godwit_database_up')
    },
    stop: () => all.disposeAsync(),
  }
}
