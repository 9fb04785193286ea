import { once } from 'node:events'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { analyzeRelease, requestAnalyses } from './analysis/actions.ts'
import { buildApp } from './app.ts'
import { dropOldEvents } from './audit/maintain-partitions.ts'
import { startSealing } from './audit/sealer.ts'
import { createFirstAccount, type FirstAccount } from './bootstrap.ts'
import type { Config } from './config.ts'
import { createDeps } from './create-deps.ts'
import { type DatabaseHealth, watchDatabase } from './db/database-health.ts'
import { isDatabaseUnavailable, isRefusedForGood } from './db/errors.ts'
import type { Deps } from './deps.ts'
import { removeDeviceEvents } from './devices/remove-device-events.ts'
import { boundConnections } from './http/bound-connections.ts'
import { createClientAddresses } from './http/client-addresses.ts'
import { closeGracefully } from './http/close-gracefully.ts'
import { createFairQueue } from './http/fair-queue.ts'
import { createHttpServer } from './http/http-server.ts'
import { capConnections, readOpenFileLimit } from './http/open-file-limit.ts'
import { createWaitingDoor } from './http/waiting-door.ts'
import { sendMail } from './mail/send-mail.ts'
import { removeOrganization, resumeRemovals } from './organizations/remove-organization.ts'
import { requireMetricsToken } from './service/metrics-token.ts'
import { createProcessRegistry } from './service/prometheus.ts'
import { registerConnections } from './service/prometheus-connections.ts'
import { maintainSessions } from './sessions/maintain-sessions.ts'
import { sweepBlobs } from './transfers/sweep-blobs.ts'

const retryMs = 500

export type Service = {
  /** On the first start of an empty database. */
  firstAccount: FirstAccount | undefined
  /** Lets the requests that run finish, takes no more, and closes what the service stood on. */
  close: () => Promise<void>
  /** Ends the requests that still run; the other end sees its connection break. */
  cut: () => void
}

type Opening = Pick<
  Parameters<typeof createDeps>[0],
  'config' | 'log' | 'connectionString' | 'isServing' | 'collectFigures'
>

/**
 * The service on a database, listening. Until the database answers it says so to whoever asks, for as long as it takes or
 * until `signal` ends the wait. What was opened is closed again when something after it fails.
 */
export async function openService(options: {
  config: Config
  log: Logger
  connectionString: string
  signal: AbortSignal
  /** Other processes listen on the same port. */
  sharesPort?: boolean
  /** They tell what `/metrics` says of all. */
  onRegistry?: (registry: Registry) => void
  collectFigures?: () => Promise<string>
}): Promise<Service> {
  const { config, log, connectionString, signal } = options
  await using opened = new AsyncDisposableStack()
  const databaseHealth = watchDatabase({ connectionString, log })
  opened.defer(() => databaseHealth.stop())
  const processRegistry = createProcessRegistry(databaseHealth)
  const waitingDoor = createWaitingDoor({
    describeWait: () => describeWait(databaseHealth),
    collectFigures: (headers) => {
      requireMetricsToken(config, headers)
      return processRegistry.metrics()
    },
  })
  const http = createHttpServer(waitingDoor)
  const addresses = createClientAddresses(config.trustedProxies)
  const connections = boundConnections(http.server, {
    log,
    isTrustedProxy: addresses.isTrustedProxy,
    maxConnections: await chooseMaxConnections(config, log),
  })
  const queue = createFairQueue({ findAddress: addresses.find })
  registerConnections(processRegistry, { connections, queue })
  await listen(http.server, config, options.sharesPort ?? false)
  // Replaced by `closeGracefully` once there is somebody to be graceful to.
  const closing = opened.adopt(http.server, (server) => void server.close().closeAllConnections())

  let isServing = false
  const { collectFigures } = options
  const opening = {
    config,
    log,
    connectionString,
    isServing: () => isServing,
    ...(collectFigures === undefined ? {} : { collectFigures }),
  }
  const {
    deps,
    firstAccount,
    close: closeDeps,
  } = await retryWhileAway({ databaseHealth, signal, log }, () =>
    openDeps({ ...opening, databaseHealth, processRegistry }),
  )
  opened.defer(closeDeps)
  options.onRegistry?.(deps.registry)
  const app = await buildApp(deps, http)
  http.dispatchTo(queue.before(app.dispatch))
  isServing = true
  const sealing = config.roles.has('worker') ? startSealing(deps) : undefined
  if (config.roles.has('worker')) deps.activityStore.start()
  const owned = opened.move()
  const cutting = new AbortController()
  const close = async () => {
    isServing = false
    // Until a load balancer has looked at /readyz, it sends requests here.
    await sleep(config.drainMs, undefined, { signal: cutting.signal }).catch(() => undefined)
    await closeGracefully(app.http)
    await sealing?.stop()
    await owned.disposeAsync()
  }
  const cut = () => {
    cutting.abort()
    closing.closeAllConnections()
  }
  return { firstAccount, close, cut }
}

function describeWait(databaseHealth: DatabaseHealth): string {
  const fault = databaseHealth.fault()
  return fault === undefined ? 'The server starts.' : `The server waits for the database: ${fault.message}.`
}

/** Without a file descriptor left, PostgreSQL and blobs could not be reached either. */
async function chooseMaxConnections({ maxConnections }: Config, log: Logger): Promise<number> {
  const openFileLimit = await readOpenFileLimit()
  const possible = capConnections(maxConnections, openFileLimit)
  if (possible < maxConnections)
    log.warn(
      { openFileLimit, maxConnections, possible },
      'too few files may be open for so many connections: taking fewer',
    )
  return possible
}

async function listen(server: Server, { port, host }: Config, reusePort: boolean): Promise<void> {
  server.listen({ port, host, reusePort })
  await once(server, 'listening')
}

/** A database that went away in the middle is waited for again: everything that is done on it may be done twice. */
async function retryWhileAway<T>(
  { databaseHealth, signal, log }: { databaseHealth: DatabaseHealth; signal: AbortSignal; log: Logger },
  open: () => Promise<T>,
): Promise<T> {
  for (;;) {
    await databaseHealth.untilBack(signal)
    try {
      return await open()
    } catch (error) {
      if (!isDatabaseUnavailable(error) || isRefusedForGood(error)) throw error
      log.warn({ reason: (error as Error).message }, 'the database was lost while the service started; trying again')
    }
    await sleep(retryMs, undefined, { signal })
  }
}

async function openDeps(options: Opening & { databaseHealth: DatabaseHealth; processRegistry: Registry }) {
  await using opened = new AsyncDisposableStack()
  const { deps, close } = await createDeps(options)
  opened.defer(close)
  const firstAccount = await createFirstAccount(deps.db, options.config)
  if (options.config.roles.has('worker')) await workOnJobs(deps)
  const owned = opened.move()
  return { deps, firstAccount, close: () => owned.disposeAsync() }
}

async function workOnJobs(deps: Deps): Promise<void> {
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
}
