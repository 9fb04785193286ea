import { randomUUID } from 'node:crypto'
import { createDb, createPool } from '../../db/connection.ts'
import { countingConnections, partitionConnections } from '../../db/connection-counts.ts'
import { watchDatabase } from '../../db/database-health.ts'
import { isDatabaseUnavailable } from '../../db/errors.ts'
import { guardPool } from '../../db/guarded-pool.ts'
import { openReplica } from '../../db/open-replica.ts'
import { AppError } from '../../errors.ts'
import { hourMs } from '../../time.ts'
import { countAdoption, countDevices, countHourly, countNewDevices, countVersions, findFirstTime } from './answers.ts'
import { createBulkDb } from './bulk-reads.ts'
import { findOrInsertApp } from './compact-app.ts'
import { startCompacting } from './compacting.ts'
import { createImportSession, type ImportSession } from './import-session.ts'
import { drainApp, type Reader, readApp } from './read-app.ts'
import { removeApp } from './remove-app.ts'
import { removeDevice } from './remove-device.ts'
import { keepRetention } from './retention.ts'
import { createStoreContext, type StoreContext } from './store-context.ts'
import type { CallError, FromWorker, ToWorker, WorkerMethods, WorkerOptions } from './worker-protocol.ts'
import { letBackendYield, yieldToChecks } from './yield-to-checks.ts'

/** Imports at a time: each has up to 50 MB of lines in memory. */
const maxImports = 8

let worker: Worker | undefined
process.on('message', (message: ToWorker) => {
  if ('start' in message) worker = openWorker(message.start)
  else if ('stop' in message) void worker?.stop()
  else void worker?.answer(message)
})
// The service has ended without a word: what is half-done here, the database undoes.
process.on('disconnect', () => process.exit())
// Whoever stops all processes at once has told the service too, and the service asks for what is still to be counted.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined)

type Worker = {
  answer: (message: Extract<ToWorker, { call: number }>) => Promise<void>
  stop: () => Promise<void>
}

function openWorker(options: WorkerOptions): Worker {
  yieldToChecks()
  const log = createLog()
  // That a database is away is told by the service.
  const silent = { info: () => undefined, error: () => undefined }
  const health = watchDatabase({ ...options, log: silent })
  const db = createBulkDb(
    guardPool(() => {
      const pool = createPool(options.connectionString, countingConnections, options.statementLimit)
      if (options.isDatabaseEmbedded) pool.on('connect', (client) => void letBackendYield(client))
      return pool
    }, health),
  )
  const partitionDb = createDb(
    guardPool(() => createPool(options.connectionString, partitionConnections, options.statementLimit), health),
  )
  const replica = openReplica({
    connectionString: options.replicaConnectionString,
    statementLimit: options.statementLimit,
    log: silent,
    openDb: createBulkDb,
  })
  /** How far the service's clock is from this machine's (ms): tests have their own. */
  let clockOffsetMs = 0
  const context: StoreContext = createStoreContext({
    db,
    partitionDb,
    replica: replica?.db,
    maxDevices: options.maxDevices,
    now: () => Date.now() + clockOffsetMs,
    cacheBytes: options.cacheBytes,
    hourlyRetentionDays: options.hourlyRetentionDays,
    dailyRetentionDays: options.dailyRetentionDays,
    log,
  })
  const compacting = startCompacting(context, (measures) => send({ measures }))
  const methods = createMethods(context)
  return {
    answer: async ({ call, method, input, nowMs }) => {
      clockOffsetMs = nowMs - Date.now()
      try {
        const value = await methods[method](input as never)
        // First: whoever has the answer sees it in the figures.
        compacting.tell()
        send({ call, value })
      } catch (error) {
        send({ call, error: describeError(error) })
      }
    },
    stop: async () => {
      await compacting.stop()
      await db.destroy()
      await partitionDb.destroy()
      await replica?.close()
      await health.stop()
      process.exit()
    },
  }
}

function send(message: FromWorker): void {
  // Nobody to hear it: the process is about to end.
  process.send?.(message, undefined, undefined, () => undefined)
}

function createMethods(context: StoreContext): WorkerMethods {
  const imports = new Map<string, ImportSession>()
  const read = async <Result>(appId: string, nothing: Result, use: (reader: Reader) => Promise<Result> | Result) =>
    (await readApp(context, appId, async (reader) => await use(reader))) ?? nothing
  const findImport = (id: string) => {
    const session = imports.get(id)
    if (session === undefined) throw new Error(`there is no import ${id}`)
    return session
  }
  return {
    countVersions: ({ appId, sinceMs }) => read(appId, [], (reader) => countVersions(reader, sinceMs)),
    countAdoption: ({ appId, ...question }) =>
      read(
        appId,
        question.patches.map(() => question.spans.map(() => ({ devices: 0, target: 0 }))),
        (reader) => countAdoption(reader, question),
      ),
    countDevices: ({ appId, spans, groupBy }) =>
      read(
        appId,
        spans.map(() => ({ devices: 0, groups: [] })),
        (reader) => countDevices(reader, spans, groupBy),
      ),
    countNewDevices: ({ appId, spans }) =>
      read(
        appId,
        spans.map(() => 0),
        (reader) => countNewDevices(reader, spans),
      ),
    countHourly: ({ appId, fromMs, toMs }) =>
      read(
        appId,
        Array.from({ length: (toMs - fromMs) / hourMs }, () => 0),
        (reader) => countHourly(reader, { fromMs, toMs }),
      ),
    findFirstTime: ({ appId }) => read<number | undefined>(appId, undefined, findFirstTime),
    compact: ({ appId }) => context.exclusively(appId, () => drainApp(context, appId)),
    removeDevice: (input) => context.exclusively(input.appId, () => removeDevice(context, input)),
    removeApp: (input) => context.exclusively(input.appId, () => removeApp(context, input)),
    keepRetention: () => keepRetention(context),
    beginImport: async ({ appId }) => {
      if (!(await findOrInsertApp(context, appId))) throw new AppError('not_found')
      if (imports.size >= maxImports) throw new AppError('unavailable', undefined, { retryAfterSeconds: 30 })
      // Not by number: after a restart of this process an import that goes on must not meet another.
      const id = randomUUID()
      imports.set(id, createImportSession(context, appId))
      return id
    },
    continueImport: ({ id, bytes }) => findImport(id).take(bytes),
    finishImport: async ({ id }) => {
      const result = await findImport(id).finish()
      imports.delete(id)
      return result
    },
    abandonImport: async ({ id }) => {
      const session = imports.get(id)
      imports.delete(id)
      // What has come whole is kept, as it would be if the rest came later.
      await session?.finish()
    },
  }
}

function describeError(error: unknown): CallError {
  if (error instanceof AppError) {
    return { code: error.code, details: error.details, retryAfterSeconds: error.retryAfterSeconds }
  }
  if (isDatabaseUnavailable(error)) return { code: 'unavailable', details: undefined, retryAfterSeconds: 5 }
  return error instanceof Error
    ? { message: error.message, stack: error.stack }
    : { message: String(error), stack: undefined }
}

function createLog(): StoreContext['log'] {
  const at = (level: 'info' | 'warn' | 'error') => (fields: object, message: string) => {
    // What an error is made of does not cross to another process.
    const { err, ...others } = fields as { err?: unknown }
    const described = err instanceof Error ? { err: { message: err.message, stack: err.stack } } : {}
    send({ log: level, fields: { ...others, ...described }, message })
  }
  return { info: at('info'), warn: at('warn'), error: at('error') } as StoreContext['log']
}
