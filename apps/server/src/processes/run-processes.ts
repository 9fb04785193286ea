import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import type { FirstAccount } from '../bootstrap.ts'
import type { Config } from '../config.ts'
import { createFigureCollector } from './collect-figures.ts'
import type { FromServer, ToServer } from './messages.ts'

const program = fileURLToPath(new URL('./server-process.ts', import.meta.url))
/** One that ends sooner after its start is not replaced at once, but after a pause that grows. */
const settledMs = 10_000
const firstPauseMs = 100
const lastPauseMs = 5000

export type Processes = {
  firstAccount: FirstAccount | undefined
  close: () => Promise<void>
  cut: () => void
}

type Slot = { number: number; child: ChildProcess; send: (message: ToServer) => void; ended: Promise<unknown> }

/**
 * Several processes that share the port, each of which is replaced when it ends. The first of them also does what the role
 * `worker` asks for, so that neither jobs nor counting take their memory more than once.
 */
export async function runProcesses(options: {
  config: Config
  log: Logger
  connectionString: string
  signal: AbortSignal
}): Promise<Processes> {
  const { config, log, connectionString, signal } = options
  const slots = new Map<number, Slot>()
  const figures = createFigureCollector(() => [...slots.values()])
  let isStopping = false

  const collectFigures = () =>
    figures.collect().catch((error: unknown) => {
      log.error({ err: error }, 'the figures of the processes cannot be made one')
      return ''
    })
  /** Resolves when it serves; rejects when it cannot. */
  const open = (number: number, quickEnds = 0): Promise<FirstAccount | undefined> => {
    const startedAt = performance.now()
    const child = fork(program, [], { serialization: 'advanced', execArgv: process.execArgv })
    const slot: Slot = {
      number,
      child,
      send: (message) => void child.send(message, () => undefined),
      ended: once(child, 'exit'),
    }
    slots.set(number, slot)
    slot.send({ start: { config: configOf(config, number), connectionString, number } })
    return new Promise((resolve, reject) => {
      child.on('message', (message: FromServer) => {
        if ('ready' in message) resolve(message.ready.firstAccount)
        else if ('failed' in message) reject(new Error(message.failed))
        else if ('measured' in message) figures.take(slot, message)
        else void collectFigures().then((text) => slot.send({ figures: message.wanted, text }))
      })
      child.once('exit', (code, signalName) => {
        slots.delete(number)
        reject(new Error(`process ${number} ended (${signalName ?? code})`))
        if (isStopping) return
        const quick = performance.now() - startedAt < settledMs ? quickEnds + 1 : 0
        const pauseMs = quick < 2 ? 0 : Math.min(firstPauseMs * 2 ** quick, lastPauseMs)
        log.error({ process: number, code, signal: signalName, pauseMs }, 'a process ended by itself; replacing it')
        setTimeout(() => {
          if (!isStopping) open(number, quick).catch(() => undefined)
        }, pauseMs)
      })
    })
  }
  const close = async () => {
    isStopping = true
    const all = [...slots.values()]
    for (const { send } of all) send({ stop: true })
    await Promise.all(all.map(({ ended }) => ended))
  }
  const numbers = Array.from({ length: config.workers }, (_, index) => index + 1)
  const giveUp = () => void close()
  signal.addEventListener('abort', giveUp, { once: true })
  try {
    const accounts = await Promise.all(numbers.map((number) => open(number)))
    const cut = () => {
      for (const { send } of slots.values()) send({ cut: true })
    }
    return { firstAccount: accounts.find((account) => account !== undefined), close, cut }
  } catch (error) {
    await close()
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

function configOf(config: Config, number: number): Config {
  const roles = new Set(config.roles)
  if (number > 1) roles.delete('worker')
  // Each counts what it is asked for: together they may take what one may.
  return { ...config, roles, metricsCacheBytes: Math.floor(config.metricsCacheBytes / config.workers) }
}
