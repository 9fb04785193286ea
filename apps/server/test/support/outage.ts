import { runOnServer } from './test-database.ts'
import type { TestService } from './test-service.ts'

/** Takes the database away from the service, as a fail-over does: connections break, and new ones are refused. */
export async function startOutage(
  service: Pick<TestService, 'connectionString'>,
): Promise<{ end: () => Promise<void> }> {
  const name = new URL(service.connectionString).pathname.slice(1)
  await runOnServer(`alter database ${name} allow_connections false`)
  await runOnServer(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
  return { end: () => runOnServer(`alter database ${name} allow_connections true`) }
}
