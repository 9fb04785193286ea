import { createTestApp } from '../support/publishing.ts'
import { createServerProcess, type ServerProcess } from '../support/server-process.ts'
import { createTestDatabase } from '../support/test-database.ts'

export type ServerWithApp = {
  database: Awaited<ReturnType<typeof createTestDatabase>>
  server: ServerProcess
  appId: string
  remove: () => Promise<void>
}

/** A real server on a database of its own, which an outage can take away, with an app. */
export async function startServerWithApp(environment: Record<string, string>): Promise<ServerWithApp> {
  const database = await createTestDatabase()
  const server = await createServerProcess({ DATABASE_URL: database.connectionString, ...environment })
  await server.start()
  const { organizations } = await server.api.listOrganizations()
  const appId = await createTestApp({ api: server.api, organizationId: organizations[0]?.organization.id ?? 0 })
  const remove = async () => {
    await server.remove()
    await database.drop()
  }
  return { database, server, appId, remove }
}
