import { join } from 'node:path'
import { type Logger, pino } from 'pino'
import pretty from 'pino-pretty'
import { buildApp } from './app.ts'
import { createFirstAccount } from './bootstrap.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import { createDeps } from './create-deps.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres/index.ts'
import { sweepBlobs } from './transfers/sweep-blobs.ts'
import { describeFirstStart, describeLaterStart } from './welcome.ts'

type Running = { stop: () => Promise<void> }

/** Starts the service. What was opened is closed again when something after it fails. */
async function start(config: Config, log: Logger): Promise<Running> {
  const closers: (() => Promise<void>)[] = []
  const stop = async () => {
    for (const close of closers.splice(0).toReversed()) await close()
  }
  try {
    let isServing = false
    const postgres = await openDatabase(config, log)
    closers.push(postgres.stop)
    const { connectionString } = postgres
    const { deps, close } = await createDeps({ config, log, connectionString, isServing: () => isServing })
    closers.push(close)
    const account = await createFirstAccount(deps.db, config)
    await deps.jobs.work({ sweepBlobs: () => sweepBlobs(deps) })
    const app = await buildApp(deps)
    closers.push(async () => {
      isServing = false
      await app.http.close()
    })
    await app.http.listen({ port: config.port, host: config.host })
    isServing = true
    const { publicUrl } = config
    process.stdout.write(
      account === undefined ? describeLaterStart({ publicUrl }) : describeFirstStart({ publicUrl, account }),
    )
    return { stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function openDatabase(config: Config, log: Logger): Promise<Pick<EmbeddedPostgres, 'connectionString' | 'stop'>> {
  if (config.databaseUrl !== undefined) return { connectionString: config.databaseUrl, stop: async () => {} }
  return await startEmbeddedPostgres({ dataDir: join(config.dataDir, 'postgres'), log })
}

/** Lines for a person on a terminal, JSON for everything else. */
function createLog(level: string): Logger {
  const options = { level, base: undefined }
  return process.stdout.isTTY ? pino(options, pretty({ sync: true, ignore: 'pid,hostname' })) : pino(options)
}

/** Under npm one Ctrl-C arrives twice: from the terminal, and passed on by npm. */
const sameSignalMs = 1000

function stopOnSignal(running: Running, log: Logger): void {
  let stoppingSince: number | undefined
  const handleSignal = (signal: NodeJS.Signals) => {
    if (stoppingSince !== undefined) {
      if (performance.now() - stoppingSince < sameSignalMs) return
      log.warn({ signal }, 'told twice to stop: cutting the requests that still run')
      process.exit(1)
    }
    stoppingSince = performance.now()
    log.info({ signal }, 'finishing the requests that run, then stopping')
    running.stop().then(
      () => log.info('stopped'),
      (error: unknown) => {
        log.error({ err: error }, 'did not stop cleanly')
        process.exitCode = 1
      },
    )
  }
  process.on('SIGINT', handleSignal)
  process.on('SIGTERM', handleSignal)
}

try {
  const config = readConfig(process.env)
  const log = createLog(config.logLevel)
  stopOnSignal(await start(config, log), log)
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : error)
  process.exitCode = 1
}
