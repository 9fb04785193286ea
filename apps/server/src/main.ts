import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Logger } from 'pino'
import { type Config, ConfigError, readConfig } from './config.ts'
import { createLog } from './create-log.ts'
import { countConnections } from './db/connection-counts.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres/index.ts'
import { describeFailure, describeStart } from './welcome.ts'

/** Whoever stops and starts at once, commands of the operator, and those that PostgreSQL reserves. */
const spareConnections = 40
const minConnections = 100

type Running = {
  /** Finishes what runs; the database ends last. */
  stop: () => Promise<void>
  cut: () => void
}

async function start(config: Config, log: Logger, signal: AbortSignal): Promise<Running> {
  // The rest of the program is read while the database starts: each takes about half of the time until it is ready.
  const [database, open] = await Promise.all([openDatabase(config, log), importOpening(config)])
  try {
    const { connectionString } = database
    const service = await open({ config, log, connectionString, signal })
    process.stdout.write(describeStart({ publicUrl: config.publicUrl, account: service.firstAccount }))
    const stop = async () => {
      await service.close()
      await database.stop()
    }
    return { stop, cut: service.cut }
  } catch (error) {
    await database.stop()
    throw error
  }
}

async function importOpening({ workers }: Config) {
  if (workers === 1) return (await import('./open-service.ts')).openService
  return (await import('./processes/run-processes.ts')).runProcesses
}

async function openDatabase(config: Config, log: Logger): Promise<Pick<EmbeddedPostgres, 'connectionString' | 'stop'>> {
  if (config.databaseUrl !== undefined) return { connectionString: config.databaseUrl, stop: async () => {} }
  const maxConnections = Math.max(minConnections, countConnections(config).primary + spareConnections)
  return await startEmbeddedPostgres({ dataDir: join(config.dataDir, 'postgres'), log, maxConnections })
}

/** Settings that may also stand on the command line. */
function readArguments(): Record<string, string | undefined> {
  try {
    const { values } = parseArgs({ options: { role: { type: 'string' }, workers: { type: 'string' } } })
    return {
      ...(values.role === undefined ? {} : { GODWIT_ROLE: values.role }),
      ...(values.workers === undefined ? {} : { GODWIT_WORKERS: values.workers }),
    }
  } catch (error) {
    throw new ConfigError((error as Error).message)
  }
}

/** Told to stop while it waited for its database. */
class GaveUpError extends Error {}

const lingerMs = 500
/** Under npm one Ctrl-C arrives twice: from the terminal, and passed on by npm. */
const sameSignalMs = 1000

function stopOnSignal(starting: Promise<Running>, waiting: AbortController, log: Logger): void {
  let stoppingSince: number | undefined
  const stop = async () => {
    // A signal that comes while the service starts waits for it, or the database would be left running. Only the wait for
    // a database of one's own has no end of its own.
    waiting.abort(new GaveUpError())
    const running = await starting
    await running.stop()
  }
  const handleSignal = (signal: NodeJS.Signals) => {
    if (stoppingSince !== undefined) {
      if (performance.now() - stoppingSince < sameSignalMs) return
      log.warn({ signal }, 'told again to stop: cutting the requests that still run')
      starting.then(({ cut }) => cut()).catch(() => undefined)
      return
    }
    stoppingSince = performance.now()
    log.info({ signal }, 'finishing the requests that run, then stopping; a second signal cuts them')
    stop().then(
      () => {
        log.info('stopped')
        // What may still wait is for others, such as traces that their collector does not take.
        setTimeout(() => process.exit(), lingerMs).unref()
      },
      (error: unknown) => {
        if (error instanceof GaveUpError) return
        log.error({ err: error }, 'did not stop cleanly')
        process.exitCode = 1
      },
    )
  }
  process.on('SIGINT', handleSignal)
  process.on('SIGTERM', handleSignal)
}

enableCompileCache()
try {
  const config = readConfig({ ...process.env, ...readArguments() })
  const log = createLog(config.logLevel)
  const waiting = new AbortController()
  const starting = start(config, log, waiting.signal)
  stopOnSignal(starting, waiting, log)
  await starting
} catch (error) {
  if (!(error instanceof GaveUpError)) {
    console.error(`Godwit cannot start. ${describeFailure(error)}`)
    process.exitCode = 1
  }
}
