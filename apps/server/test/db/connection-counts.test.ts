import { afterAll, beforeAll, expect, it } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { countConnections } from '../../src/db/connection-counts.ts'
import { checkOf } from '../activity/harness.ts'
import { createTestApp } from '../support/publishing.ts'
import { queryValue } from '../support/replicated-postgres.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

let service: TestService

beforeAll(async () => {
  service = await createTestService({ config: { databaseConnections: 3 } })
})
afterAll(() => service.stop())

it('an instance opens no more connections than are counted for its settings, however much is asked of it', async () => {
  const { api, organizationId } = await service.createAccount()
  const appIds = await Promise.all(Array.from({ length: 8 }, () => createTestApp({ api, organizationId })))
  const count = () =>
    queryValue(
      service.connectionString,
      `select count(*)::int from pg_stat_activity
        where datname = current_database() and application_name like 'godwit%' and pid <> pg_backend_pid()`,
    )
  let most = 0
  for (let round = 0; round < 3; round += 1) {
    const asked = appIds.flatMap((appId, device) => [
      api.getApp({ params: { appId } }),
      api.getVersionDistribution({ params: { appId } }),
      service.client().checkPatch({ body: checkOf(appId, device) }),
    ])
    most = Math.max(most, Number(await count()))
    await Promise.all(asked)
  }
  const { primary } = countConnections(service.deps.config)
  expect(primary).toBe(15)
  expect(most).toBeGreaterThan(primary / 2)
  expect(most).toBeLessThanOrEqual(primary)
})

it.each([
  [{}, { primary: 22, replica: 10 }],
  [
    { GODWIT_WORKERS: '2', GODWIT_DATABASE_CONNECTIONS: '20' },
    { primary: 64, replica: 20 },
  ],
  [{ GODWIT_ROLE: 'device' }, { primary: 16, replica: 5 }],
])('with %j that is %j', (settings, counted) => {
  expect(countConnections(readConfig(settings))).toEqual(counted)
})
