import type { Logger } from 'pino'
import { analyzeRelease, requestAnalyses } from './analysis/actions.ts'
import { buildApp } from './app.ts'
import { dropOldEvents } from './audit/maintain-partitions.ts'
import { startSealing } from './audit/sealer.ts'
import { createFirstAccount, type FirstAccount } from './bootstrap.ts'
import type { Config } from './config.ts'
import { createDeps } from './create-deps.ts'
import { removeDeviceEvents } from './devices/remove-device-events.ts'
import { closeGracefully } from './http/close-gracefully.ts'
import { sendMail } from './mail/send-mail.ts'
import { removeOrganization, resumeRemovals } from './organizations/remove-organization.ts'
import { maintainSessions } from './sessions/maintain-sessions.ts'
import { sweepBlobs } from './transfers/sweep-blobs.ts'

export type Service = {
  /** On the first start of an empty database. */
  firstAccount: FirstAccount | undefined
  /** Lets the requests that run finish, takes no more, and closes what the service stood on. */
  close: () => Promise<void>
  /** Ends the requests that still run; the other end sees its connection break. */
  cut: () => void
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
    await deps.jobs.work({
      sweepBlobs: () => sweepBlobs(deps),
      removeDeviceEvents: async (input) => {
        await removeDeviceEvents(deps.db, input)
        await deps.activityStore.removeApp(input)
      },
      removeOrganization: (input) => removeOrganization(deps, input),
      resumeRemovals: () => resumeRemovals(deps),
      sendMail: (input) => sendMail(deps, input),
      analyzeRelease: (input) => analyzeRelease(deps, input),
      requestMissingAnalyses: () => requestAnalyses(deps, { which: 'missing' }),
      maintain: async () => {
        await maintainSessions(deps)
        await dropOldEvents(deps)
        await deps.activityStore.keepRetention()
      },
    })
    const app = await buildApp(deps)
    await app.http.listen({ port: config.port, host: config.host })
    isServing = true
    const sealing = startSealing(deps)
    deps.activityStore.start()
    const close = async () => {
      isServing = false
      await closeGracefully(app.http)
      await sealing.stop()
      await closeDeps()
    }
    return { firstAccount, close, cut: () => app.http.server.closeAllConnections() }
  } catch (error) {
    await closeDeps()
    throw error
  }
}
