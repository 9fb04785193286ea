import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { type Logger, pino } from 'pino'
import pretty from 'pino-pretty'
import { type Config, ConfigError, readConfig } from './config.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres/index.ts'
import { describeStart } from './welcome.ts'

/** Starts the service, and returns what stops it: the database last. */
async function start(config: Config, log: Logger): Promise<() => Promise<void>> {
  // The rest of the program is read while the database starts: each takes about half of the time until it is ready.
  const [database, { openService }] = await Promise.all([openDatabase(config, log), import('./open-service.ts')])
  try {
    const { connectionString } = database
    const service = await openService({ config, log, connectionString })
    process.stdout.write(describeStart({ publicUrl: config.publicUrl, account: service.firstAccount }))
    return async () => {
      await service.close()
      await database.stop()
    }
  } catch (error) {
    await database.stop()
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

function stopOnSignal(stop: () => Promise<void>, log: Logger): void {
  let stoppingSince: number | undefined
  const handleSignal = (signal: NodeJS.Signals) => {
    if (stoppingSince !== undefined) {
      if (performance.now() - stoppingSince < sameSignalMs) return
      log.warn({ signal }, 'told twice to stop: cutting the requests that still run')
      process.exit(1)
    }
    stoppingSince = performance.now()
    log.info({ signal }, 'finishing the requests that run, then stopping')
    stop().then(
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

enableCompileCache()
try {
  const config = readConfig(process.env)
  const log = createLog(config.logLevel)
  const starting = start(config, log)
  // A signal that comes while the service starts waits for it, or the database would be left running.
  stopOnSignal(async () => (await starting)(), log)
  await starting
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : error)
  process.exitCode = 1
}
