import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import { createWakeablePause } from '../wakeable-pause.ts'
import { DatabaseUnavailableError, isRefusedForGood } from './errors.ts'

/** How long the database may be gone without anything having failed: nothing tells of a network that swallows packets. */
const probeEveryMs = 1000
const probeTimeoutMs = 2000
/** While it is away. */
const retryMs = 250
const retryTimeoutMs = 1000
/** Now and then there is more patience: it may be there, and slow. */
const patientTimeoutMs = 5000
const patientEvery = 10
const tooManyConnections = '53300'

/** Whether the database answers, as known from a connection of its own that asks every second. */
export type DatabaseHealth = {
  /** Why it cannot be used now; undefined: it can. */
  fault: () => DatabaseUnavailableError | undefined
  /** Resolves when that is known. */
  asked: Promise<void>
  /** Told when a connection failed: it is found out at once what that means. */
  suspect: () => void
  /** Calls back each time that the database is lost. */
  onLost: (react: (fault: DatabaseUnavailableError) => void) => void
  /** Resolves while the database answers. Rejects when it refuses us for good, or when the wait is given up. */
  untilBack: (signal?: AbortSignal) => Promise<void>
  stop: () => Promise<void>
}

/** A replica that was promoted goes its own way, and a primary that is a standby takes no writes: neither is used. */
export function watchDatabase(options: {
  connectionString: string
  is?: 'primary' | 'replica'
  log: Pick<Logger, 'info' | 'error'>
}): DatabaseHealth {
  const { connectionString, log, is = 'primary' } = options
  const name = is === 'primary' ? 'the database' : 'the replica of the database'
  const stopping = new AbortController()
  const asked = Promise.withResolvers<void>()
  const reactions: ((fault: DatabaseUnavailableError) => void)[] = []
  let waiting: PromiseWithResolvers<void>[] = []
  let fault: DatabaseUnavailableError | undefined = new DatabaseUnavailableError('it has not been asked yet')
  let lostAt = performance.now()
  let hasAnswered = false
  let client: pg.Client | undefined
  const pause = createWakeablePause()
  let isSuspected = false
  let failures = 0

  const timeoutMs = () => {
    if (fault === undefined) return probeTimeoutMs
    return failures % patientEvery === patientEvery - 1 ? patientTimeoutMs : retryTimeoutMs
  }
  const connect = async (): Promise<pg.Client> => {
    const opened = new pg.Client({ connectionString, application_name: 'godwit health', keepAlive: true })
    // Without a listener the loss of the connection would end the process.
    opened.on('error', () => suspect())
    try {
      await within(timeoutMs(), opened.connect())
      return opened
    } catch (error) {
      cutConnection(opened)
      throw error
    }
  }
  const ask = async () => {
    client ??= await connect()
    const question = client.query<{ standby: boolean }>('select pg_is_in_recovery() as standby')
    const { rows } = await within(timeoutMs(), question)
    if (rows[0]?.standby !== (is === 'replica'))
      throw new DatabaseUnavailableError(is === 'primary' ? 'the database is a standby' : 'it is no standby')
  }
  const probe = async () => {
    const wasConnected = client !== undefined
    try {
      await ask()
    } catch (error) {
      forgetClient()
      // A single connection that was ended is no outage, when there can be a new one at once.
      if (!wasConnected || error instanceof DatabaseUnavailableError) throw error
      await ask()
    }
  }
  const forgetClient = () => {
    if (client !== undefined) cutConnection(client)
    client = undefined
  }
  const handleLoss = (error: Error) => {
    forgetClient()
    failures += 1
    // The server is there, and what is connected goes on.
    if ((error as Partial<pg.DatabaseError>).code === tooManyConnections && fault === undefined) return
    const wasThere = fault === undefined
    const reason = describe(error)
    if (fault?.message !== reason) log.error({ reason }, `${name} does not answer`)
    fault = error instanceof DatabaseUnavailableError ? error : new DatabaseUnavailableError(reason, { cause: error })
    if (isRefusedForGood(error)) {
      const refusal = new Error(`DATABASE_URL cannot be used: ${reason}`)
      for (const { reject } of waiting.splice(0)) reject(refusal)
    }
    if (!wasThere) return
    lostAt = performance.now()
    for (const react of reactions) react(fault)
  }
  const handleAnswer = () => {
    if (fault === undefined) return
    fault = undefined
    failures = 0
    if (hasAnswered) log.info({ seconds: Math.round((performance.now() - lostAt) / 100) / 10 }, `${name} answers again`)
    hasAnswered = true
    for (const { resolve } of waiting.splice(0)) resolve()
  }
  const run = async () => {
    while (!stopping.signal.aborted) {
      isSuspected = false
      await probe().then(handleAnswer, handleLoss)
      asked.resolve()
      if (stopping.signal.aborted) break
      if (fault !== undefined) await sleep(retryMs)
      else if (!isSuspected) await pause.wait(probeEveryMs)
    }
    forgetClient()
  }
  const suspect = () => {
    isSuspected = true
    pause.end()
  }
  const running = run()
  return {
    fault: () => fault,
    asked: asked.promise,
    suspect,
    onLost: (react) => void reactions.push(react),
    untilBack: async (signal) => {
      if (fault === undefined) return
      const wait = Promise.withResolvers<void>()
      waiting.push(wait)
      const giveUp = () => wait.reject(signal?.reason)
      signal?.addEventListener('abort', giveUp, { once: true })
      if (signal?.aborted === true) giveUp()
      await wait.promise.finally(() => {
        waiting = waiting.filter((each) => each !== wait)
        signal?.removeEventListener('abort', giveUp)
      })
    },
    stop: async () => {
      stopping.abort()
      pause.end()
      await running
    },
  }
}

export class TooLateError extends DatabaseUnavailableError {}

/** Rejects with a TooLateError when the promise takes longer. */
export async function within<T>(limitMs: number, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    // After a pause of this process the answer may have come long ago, and only not been read.
    setImmediate(() => reject(new TooLateError(`no answer within ${limitMs} ms`)))
  }, limitMs)
  promise.catch(() => undefined)
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** Without a word: whoever waits for an answer on it is told that it was terminated. */
export function cutConnection(client: pg.ClientBase): void {
  const { connection } = client as unknown as { connection: { stream: { destroy: () => void } } }
  connection.stream.destroy()
}

function describe(error: Error): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map(({ message }) => message).join(', ')
  return error.message
}
