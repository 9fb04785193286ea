import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import type { Config } from '../../config.ts'
import { readStatementLimit } from '../../db/connection.ts'
import { createReplicaReads } from '../../db/open-replica.ts'
import { AppError } from '../../errors.ts'
import type { ActivityStore } from '../activity-store.ts'
import type {
  CallError,
  FromWorker,
  MethodName,
  ToWorker,
  WorkerMeasures,
  WorkerMethods,
  WorkerOptions,
} from './worker-protocol.ts'

/** Calls that may wait for the worker. It answers one after the other. */
const maxQuestions = 64
/** Those of an import that has begun are not refused: each waits for the one before. */
const ofBegunImports = new Set<MethodName>(['continueImport', 'finishImport', 'abandonImport'])
/** A piece of an import that is sent at once: 15 ms of the worker's time. */
const maxPieceBytes = 1024 ** 2
const restartMs = 1000
/** One that hangs must not keep the service from its end: what is half-done, the database undoes. */
const stopPatienceMs = 10_000
/** Before the first one has told. */
const nothingMeasured = {
  compactions: 0,
  compactedObservations: 0,
  dropped: 0,
  unitBytes: 0,
  stateBytes: 0,
  replicaReads: createReplicaReads(),
}
/** One that only questions have started ends after so long without any: it keeps what it has read in memory. */
const idleMs = 10 * 60_000

type Call = { resolve: (value: unknown) => void; reject: (error: unknown) => void }

/**
 * Its garbage is buffers, of which more threads find none sooner: on two cores, cold questions took 65 ms instead of 80
 * (1M devices), and the threads took the other core from those who answer devices.
 */
const nodeFlags = ['--single-threaded-gc', '--min-semi-space-size=64', '--max-semi-space-size=64']
const program = fileURLToPath(new URL('./worker.ts', import.meta.url))

/**
 * Counts devices in a process of its own, so that no question of however many devices makes a check wait. It starts with
 * the first question, or with `start`, and again when it was lost. Without `start` it ends when it is not asked for long.
 */
export function createActivityStore(options: {
  connectionString: string
  config: Pick<
    Config,
    | 'databaseUrl'
    | 'databaseDirectUrl'
    | 'databaseReplicaUrl'
    | 'statementTimeoutMs'
    | 'metricsCacheBytes'
    | 'maxDevicesPerApp'
    | 'hourlyRetentionDays'
    | 'dailyRetentionDays'
  >
  clock: () => Date
  log: Logger
  idleMs?: number
}): ActivityStore {
  const { config, clock, log } = options
  const workerOptions: WorkerOptions = {
    connectionString: options.connectionString,
    replicaConnectionString: config.databaseReplicaUrl,
    isDatabaseEmbedded: config.databaseUrl === undefined,
    statementLimit: readStatementLimit(config),
    cacheBytes: config.metricsCacheBytes,
    maxDevices: config.maxDevicesPerApp,
    hourlyRetentionDays: config.hourlyRetentionDays,
    dailyRetentionDays: config.dailyRetentionDays,
  }
  const calls = new Map<number, Call>()
  let lastCall = 0
  let worker: ChildProcess | undefined
  let ended: Promise<void> = Promise.resolve()
  /** Of the one before, which has been told to end. */
  let endedBefore: Promise<void> = Promise.resolve()
  let isStopping = false
  let isKept = false
  let runningImports = 0
  let idleTimer: NodeJS.Timeout | undefined
  let measures: WorkerMeasures | undefined

  const start = () => {
    if (worker !== undefined || isStopping) return
    // In a session of its own: Ctrl-C at a terminal is for the service, which then tells it to stop.
    const started = fork(program, [], { serialization: 'advanced', detached: true, execArgv: nodeFlags })
    worker = started
    measures ??= { ...nothingMeasured, countedUntilMs: Date.now() }
    started.send({ start: workerOptions } satisfies ToWorker, ignoreFailure)
    started.on('message', (message: FromWorker) => {
      if ('log' in message) log[message.log](message.fields, message.message)
      else if ('call' in message) settle(message)
      else if (worker === started) measures = message.measures
    })
    ended = new Promise((resolve) => {
      const handleEnd = (reason: object) => {
        resolve()
        if (worker !== started) return
        worker = undefined
        for (const { reject } of calls.values()) reject(unavailable())
        calls.clear()
        if (!isStopping) {
          log.error(reason, 'the process that counts devices has ended')
          if (isKept) setTimeout(start, restartMs).unref()
          else measures = undefined
        }
      }
      started.once('error', (error) => handleEnd({ err: error }))
      started.once('exit', (code, signal) => handleEnd({ code, signal }))
    })
  }
  /** The next question starts another one, also while this one still ends. */
  const endIdleOne = () => {
    if (isKept || isStopping || calls.size > 0 || runningImports > 0) return
    const leaving = worker
    leaving?.send({ stop: true } satisfies ToWorker, ignoreFailure)
    setTimeout(() => leaving?.kill('SIGKILL'), stopPatienceMs).unref()
    worker = undefined
    measures = undefined
    endedBefore = ended
  }
  const awaitIdleness = () => {
    clearTimeout(idleTimer)
    idleTimer = setTimeout(endIdleOne, options.idleMs ?? idleMs).unref()
  }
  const settle = (message: Extract<FromWorker, { call: number }>) => {
    const call = calls.get(message.call)
    calls.delete(message.call)
    awaitIdleness()
    if ('error' in message) call?.reject(readError(message.error))
    else call?.resolve(message.value)
  }
  const call = <Name extends MethodName>(
    method: Name,
    input: Parameters<WorkerMethods[Name]>[0],
  ): ReturnType<WorkerMethods[Name]> => {
    const answer = new Promise((resolve, reject) => {
      start()
      if (worker === undefined) return reject(unavailable())
      if (calls.size >= maxQuestions && !ofBegunImports.has(method)) return reject(unavailable())
      lastCall += 1
      calls.set(lastCall, { resolve, reject })
      const message: ToWorker = { call: lastCall, method, input, nowMs: clock().getTime() }
      worker.send(message, ignoreFailure)
    })
    return answer as ReturnType<WorkerMethods[Name]>
  }
  return {
    countVersions: (input) => call('countVersions', input),
    countAdoption: (input) => call('countAdoption', input),
    countDevices: (input) => call('countDevices', input),
    countNewDevices: (input) => call('countNewDevices', input),
    countHourly: (input) => call('countHourly', input),
    findFirstTime: (input) => call('findFirstTime', input),
    compact: (input) => call('compact', input),
    removeDevice: (input) => call('removeDevice', input),
    removeApp: (input) => call('removeApp', input),
    keepRetention: () => call('keepRetention', undefined),
    importObservations: async ({ appId, bytes }) => {
      const id = await call('beginImport', { appId })
      runningImports += 1
      try {
        for await (const piece of joinPieces(bytes)) {
          await call('continueImport', { id, bytes: piece })
        }
        return await call('finishImport', { id })
      } catch (error) {
        await call('abandonImport', { id }).catch(() => undefined)
        throw error
      } finally {
        runningImports -= 1
        awaitIdleness()
      }
    },
    start: () => {
      isKept = true
      start()
    },
    stop: async () => {
      isStopping = true
      worker?.send({ stop: true } satisfies ToWorker, ignoreFailure)
      const { promise: late, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, stopPatienceMs)
      await Promise.race([ended, late.then(() => worker?.kill('SIGKILL'))])
      clearTimeout(timer)
      await Promise.all([ended, endedBefore])
    },
    measure: () => {
      const nowMs = Date.now()
      const { countedUntilMs, ...others } = measures ?? { ...nothingMeasured, countedUntilMs: nowMs }
      // Grows while nothing is heard of the process: what it last told would look as if all were well.
      return { ...others, lagMs: Math.max(0, nowMs - countedUntilMs), questions: calls.size }
    },
  }
}

/** Whoever waits for an answer is told when the process has ended. */
function ignoreFailure(): void {}

function unavailable(): AppError {
  return new AppError('unavailable', undefined, { retryAfterSeconds: 2 })
}

function readError(error: CallError): Error {
  if ('code' in error) {
    const { retryAfterSeconds } = error
    return new AppError(error.code, error.details, retryAfterSeconds === undefined ? {} : { retryAfterSeconds })
  }
  return Object.assign(new Error(error.message), { stack: error.stack })
}

/** In buffers of their own, that can be given away. */
async function* joinPieces(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let piece = new Uint8Array(maxPieceBytes)
  let used = 0
  for await (const chunk of bytes) {
    for (let from = 0; from < chunk.length; ) {
      const taken = chunk.subarray(from, from + maxPieceBytes - used)
      piece.set(taken, used)
      used += taken.length
      from += taken.length
      if (used < maxPieceBytes) continue
      yield piece
      piece = new Uint8Array(maxPieceBytes)
      used = 0
    }
  }
  if (used > 0) yield piece.slice(0, used)
}
