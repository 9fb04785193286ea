import type { Readable } from 'node:stream'
import type { Logger } from 'pino'
import type { ByteSource } from './archive.ts'
import { type ChildCommand, defaultHeapMb, findChildCommand } from './child-command.ts'
import { type AnalysisChild, startChild } from './child-process.ts'
import { MalformedFrameError, readFrames, writeFrame } from './frames.ts'
import { decodeMessage, maxMessageBytes, maxRequestBytes } from './messages.ts'
import { type AnalysisOutcome, readAnswer } from './read-answer.ts'

export type Analyzer = {
  /** Never rejects. An aborted one has failed. */
  analyze: (source: ByteSource, signal?: AbortSignal) => Promise<AnalysisOutcome>
  /** Ends what is running, and lets nothing begin. */
  stop: () => Promise<void>
}

export type AnalyzerOptions = {
  log: Logger
  timeoutMs?: number
  heapMb?: number
  /** The program of the process; tests have others. */
  script?: URL
}

const defaultTimeoutMs = 15_000

/** What one analysis may read: a list of 64 MB, two tables of 64 MB and some icons take a third of it. */
const budget = { reads: 4000, bytes: 768 * 1024 ** 2 }

/**
 * Analyzes archives that anyone may have made, each in a process of its own: one that brings its process down brings
 * nothing else down, and what it can reach there is its own bytes.
 */
export function createAnalyzer(options: AnalyzerOptions): Analyzer {
  const { log, timeoutMs = defaultTimeoutMs, heapMb = defaultHeapMb } = options
  const script = options.script ?? new URL('./child.ts', import.meta.url)
  const stopped = new AbortController()
  const running = new Set<Promise<unknown>>()
  let command: Promise<ChildCommand> | undefined

  const analyze = async (source: ByteSource, signal?: AbortSignal): Promise<AnalysisOutcome> => {
    const ending = AbortSignal.any([stopped.signal, ...(signal === undefined ? [] : [signal])])
    command ??= findChildCommand({ script, heapMb, log })
    try {
      const found = await command
      if (ending.aborted) return { kind: 'failed', reason: 'it was aborted' }
      return await analyzeInChild({ command: found, source, ending, timeoutMs, log })
    } catch (error) {
      return { kind: 'failed', reason: String(error) }
    }
  }
  return {
    analyze: (source, signal) => {
      const outcome = analyze(source, signal)
      running.add(outcome)
      return outcome.finally(() => running.delete(outcome))
    },
    stop: async () => {
      stopped.abort()
      await Promise.all(running)
    },
  }
}

type Analysis = {
  command: ChildCommand
  source: ByteSource
  ending: AbortSignal
  timeoutMs: number
  log: Logger
}

async function analyzeInChild({ command, source, ending, timeoutMs, log }: Analysis): Promise<AnalysisOutcome> {
  const startedAt = performance.now()
  const child = startChild(command, [String(source.sizeBytes)])
  const usage: Usage = { reads: 0, bytes: 0, waitingMs: 0 }
  const interruption = interruptAfter(timeoutMs, ending, usage)
  let outcome: AnalysisOutcome
  try {
    // What has not come to its end by then is left alone: killing the child ends it, but for a read of the source.
    const answer = await Promise.race([serve(child, source, usage), interruption.happened])
    outcome = answer ?? (await Promise.race([explainEnd(child, usage), interruption.happened]))
  } catch (error) {
    outcome = explainFailure(error)
  } finally {
    interruption.cancel()
    usage.peakBytes ??= await child.findPeakBytes()
    child.kill()
    child.channel.destroy()
    await child.ended
  }
  log.debug(
    {
      outcome: outcome.kind,
      durationMs: Math.round(performance.now() - startedAt),
      reads: usage.reads,
      readBytes: usage.bytes,
      peakRssBytes: usage.peakBytes,
      errorText: child.errorText() || undefined,
    },
    'an archive was analyzed',
  )
  return outcome
}

/** What an analysis has taken so far. */
type Usage = {
  reads: number
  bytes: number
  waitingMs: number
  /** Of a read that has not come yet. */
  waitingSince?: number | undefined
  peakBytes?: number | undefined
}

/** The child did what no analysis of ours does. */
class MisbehaviourError extends Error {}
/** The archive took more than it may. */
class ExhaustionError extends Error {}

/** Answers what the child asks until it gives its answer. undefined: it ended without one. */
async function serve(child: AnalysisChild, source: ByteSource, usage: Usage): Promise<AnalysisOutcome | undefined> {
  for await (const frame of readFrames(readUntilEnd(child.channel), maxMessageBytes)) {
    const message = decodeMessage(frame)
    if (message === undefined) throw new MisbehaviourError('it sent what is no message')
    if (message.kind === 'answer') {
      const answer = readAnswer(message)
      if (answer === undefined) throw new MisbehaviourError('it sent an answer that is none')
      // Before the channel closes: the child ends with it.
      usage.peakBytes = await child.findPeakBytes()
      return answer
    }
    const bytes = await readFor(message, source, usage)
    // An error is that the child has ended: the next frame, which does not come, tells.
    await writeFrame(child.channel, bytes).catch(() => undefined)
  }
  return undefined
}

/** Also a connection that breaks is an end: it does when the child is killed before it has read everything. */
async function* readUntilEnd(channel: Readable): AsyncGenerator<Buffer> {
  try {
    yield* channel
  } catch {
    // How the child ended says more.
  }
}

async function readFor({ offset, length }: { offset: number; length: number }, source: ByteSource, usage: Usage) {
  const isWithin = Number.isSafeInteger(offset) && offset >= 0 && length <= source.sizeBytes - offset
  if (!isWithin || length < 1 || length > maxRequestBytes) throw new MisbehaviourError('it asked for what is not there')
  usage.reads++
  usage.bytes += length
  if (usage.reads > budget.reads || usage.bytes > budget.bytes) {
    throw new ExhaustionError(`it takes more than ${budget.reads} reads or ${budget.bytes} bytes`)
  }
  const since = performance.now()
  usage.waitingSince = since
  const bytes = await source.read(offset, length)
  usage.waitingMs += performance.now() - since
  usage.waitingSince = undefined
  if (bytes.length !== length) throw new Error(`the source gave ${bytes.length} bytes instead of ${length}`)
  return bytes
}

function interruptAfter(timeoutMs: number, ending: AbortSignal, usage: Usage) {
  const { promise, reject } = Promise.withResolvers<never>()
  const onTimeout = () => {
    const pendingMs = usage.waitingSince === undefined ? 0 : performance.now() - usage.waitingSince
    const isSourceSlow = usage.waitingMs + pendingMs > timeoutMs / 2
    const seconds = `${timeoutMs / 1000} s`
    if (isSourceSlow) reject(new Error(`the source is too slow: ${seconds} have passed`))
    else if (usage.reads === 0) reject(new Error(`the analysis has not begun within ${seconds}`))
    else reject(new ExhaustionError(`it takes longer than ${seconds}`))
  }
  const onAbort = () => reject(new Error('it was aborted'))
  const timer = setTimeout(onTimeout, timeoutMs)
  ending.addEventListener('abort', onAbort)
  // Also when nobody waits for it any more.
  promise.catch(() => undefined)
  return {
    happened: promise,
    cancel: () => {
      clearTimeout(timer)
      ending.removeEventListener('abort', onAbort)
    },
  }
}

function explainFailure(error: unknown): AnalysisOutcome {
  const isArchiveAtFault =
    error instanceof ExhaustionError || error instanceof MisbehaviourError || error instanceof MalformedFrameError
  if (isArchiveAtFault) return { kind: 'unanalyzable', problem: 'limit_exceeded', detail: error.message }
  return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) }
}

/** Signals that nobody sends: the process ran into its caps or over its own memory. */
const fatalSignals: ReadonlySet<NodeJS.Signals | null> = new Set([
  'SIGABRT',
  'SIGSEGV',
  'SIGBUS',
  'SIGILL',
  'SIGTRAP',
  'SIGFPE',
  'SIGSYS',
  'SIGXCPU',
])

/** Of a child that gave no answer. Before it has asked for anything, no archive can have been the reason. */
async function explainEnd(child: AnalysisChild, usage: Usage): Promise<AnalysisOutcome> {
  const { code, signal, startFailure } = await child.ended
  if (startFailure !== undefined) return { kind: 'failed', reason: `it could not be started: ${startFailure.message}` }
  if (usage.reads > 0 && fatalSignals.has(signal)) {
    return { kind: 'unanalyzable', problem: 'limit_exceeded', detail: `the analysis ended with ${signal}` }
  }
  const end = signal === null ? `code ${code}` : signal
  return { kind: 'failed', reason: `the analysis ended with ${end} and no answer: ${child.errorText().slice(0, 1000)}` }
}
