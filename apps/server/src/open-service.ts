import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { buildApp } from './app.ts'
import { createFirstAccount, type FirstAccount } from './bootstrap.ts'
import type { Config } from './config.ts'
import { createDeps } from './create-deps.ts'
import { sweepBlobs } from './transfers/sweep-blobs.ts'

export type Service = {
  /** On the first start of an empty database. */
  firstAccount: FirstAccount | undefined
  /** Lets the requests that run finish, takes no more, and closes what the service stood on. */
  close: () => Promise<void>
}

/** The service on a database, listening. What was opened is closed again when something after it fails. */
export async function openService(options: {
  config: Config
  log: Logger
  connectionString: string
}): Promise<Service> {
  const { config, log, connectionString } = options
  let isServing = false
  const { deps, close: closeDeps } = await createDeps({ config, log, connectionString, isServing: () => isServing })
  try {
    const firstAccount = await createFirstAccount(deps.db, config)
    await deps.jobs.work({ sweepBlobs: () => sweepBlobs(deps) })
    const app = await buildApp(deps)
    await app.http.listen({ port: config.port, host: config.host })
    isServing = true
    const close = async () => {
      isServing = false
      await closeGracefully(app.http)
      await closeDeps()
    }
    return { firstAccount, close }
  } catch (error) {
    await closeDeps()
    throw error
  }
}

/** How often connections are looked for whose last request has just been answered. */
const idleCheckMs = 50

/** Node closes the connections that are idle at this moment, and would wait for its clients to close the others. */
async function closeGracefully(http: FastifyInstance): Promise<void> {
  const timer = setInterval(() => http.server.closeIdleConnections(), idleCheckMs)
  await http.close().finally(() => clearInterval(timer))
}
