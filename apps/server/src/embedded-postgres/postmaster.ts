import { rm } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'
import { identifyServer } from './connection.ts'
import { type Child, findFreePort, spawnPostmaster } from './launch.ts'
import type { Layout } from './layout.ts'
import type { Log } from './log.ts'
import { inspectPid, killOrphans, type PidFile, readPidFile } from './postmaster-pid.ts'
import { measureLog, readLogSince, trimLog } from './server-log.ts'
import { stopPostmaster } from './stop.ts'

export type Context = {
  layout: Layout
  binaries: Binaries
  account: Account | undefined
  password: string
  settings: string[]
  launchId: string
  startTimeoutMs: number
  log: Log
}

/** `child` is undefined for one that another process started. */
export type Postmaster = { pid: number; port: number; child: Child | undefined; isGone(): boolean }

/** `recovering`: the postmaster is making progress, so the time that it takes does not count against the start. */
type Attempt = { postmaster: Postmaster } | { retry: string; recovering?: boolean }

const POLL_MS = 10
const BACKOFF_MS = { first: 20, most: 500 }
/** Ending a postmaster in crash recovery makes the next one begin it again, so it gets much more time than a start. */
const RECOVERY_LIMIT_MS = 600_000
const RECOVERY_NOTICE_MS = 5_000

const SHARED_MEMORY_IN_USE = 'pre-existing shared memory block'
/** What PostgreSQL says when a predecessor has not let go of the folder yet, or somebody was faster on the port. */
const PASSING =
  /pre-existing shared memory block|lock file ".*" already exists|lock file ".*" is empty|could not bind|could not create any TCP\/IP sockets/

/** A running postmaster of this cluster: the one that is already there, or a new one. `port` demands this port. */
export async function bringUp(context: Context, signal: AbortSignal, port?: number): Promise<Postmaster> {
  const { layout, startTimeoutMs, log } = context
  const startedAt = Date.now()
  let deadline = startedAt + startTimeoutMs
  let backoffMs = BACKOFF_MS.first
  let lastRetry = ''
  for (;;) {
    signal.throwIfAborted()
    const attempt = await tryOnce(context, signal, deadline, port)
    if ('postmaster' in attempt) return attempt.postmaster
    if (attempt.recovering) deadline = Math.min(Date.now() + startTimeoutMs, startedAt + RECOVERY_LIMIT_MS)
    if (Date.now() >= deadline) {
      throw new Error(
        `The embedded PostgreSQL in ${layout.clusterDir} did not start within ${startTimeoutMs} ms: ${attempt.retry} ` +
          `Its log is ${layout.logFile}.`,
      )
    }
    if (attempt.retry !== lastRetry)
      log.warn({ folder: layout.clusterDir }, `waiting to start PostgreSQL: ${attempt.retry}`)
    lastRetry = attempt.retry
    await delay(backoffMs, undefined, { signal })
    backoffMs = Math.min(backoffMs * 2, BACKOFF_MS.most)
  }
}

async function tryOnce(context: Context, signal: AbortSignal, deadline: number, port?: number): Promise<Attempt> {
  const { clusterDir } = context.layout
  let pidFile = await readPidFile(clusterDir)
  if (pidFile === 'incomplete') {
    // Either a postmaster is just writing it, or a loss of power kept the name without the content.
    await delay(200, undefined, { signal })
    pidFile = await readPidFile(clusterDir)
  }
  const file = path.join(clusterDir, 'postmaster.pid')
  if (pidFile === 'incomplete') await rm(file, { force: true })
  else if (pidFile) {
    const state = inspectPid(pidFile.pid, clusterDir)
    if (state === 'alive') return await tryAdopt(context, pidFile, port)
    // PostgreSQL clears a dead pid itself, but takes these two for alive. Backends that are left over still hold the
    // shared memory, which it finds by the folder's inode without this file.
    if (state !== 'gone') await rm(file, { force: true })
  }
  return await tryLaunch(context, signal, deadline, port ?? (await findFreePort()))
}

async function tryAdopt(context: Context, pidFile: PidFile, port: number | undefined): Promise<Attempt> {
  const { clusterDir } = context.layout
  const { pid } = pidFile
  const isGone = () => inspectPid(pid, clusterDir) !== 'alive'
  const advice = `If it does not end by itself, stop process ${pid}.`
  if (pidFile.status !== 'ready' || !pidFile.port) {
    const recovering = pidFile.status === 'starting'
    return { retry: `process ${pid} is running on this folder and is ${pidFile.status}. ${advice}`, recovering }
  }
  try {
    const found = await identifyServer(pidFile.port, context.password)
    if (found.clusterDir !== clusterDir) {
      const claim = `postmaster.pid names process ${pid}, but port ${pidFile.port} serves ${found.clusterDir}.`
      return {
        retry: `${claim} If process ${pid} is not PostgreSQL, remove ${path.join(clusterDir, 'postmaster.pid')}.`,
      }
    }
    if (found.launchId === context.launchId && (port === undefined || port === pidFile.port)) {
      return { postmaster: { pid, port: pidFile.port, child: undefined, isGone } }
    }
  } catch (error) {
    const { message } = error as Error
    return { retry: `process ${pid} is running on this folder and does not let us in (${message}). ${advice}` }
  }
  await stopPostmaster({ pid, isGone }, clusterDir, context.binaries.pg_ctl)
  return { retry: `process ${pid} ran with other settings and was stopped.` }
}

async function tryLaunch(context: Context, signal: AbortSignal, deadline: number, port: number): Promise<Attempt> {
  const { layout, binaries, account, password } = context
  trimLog(layout.logFile)
  const logBytes = measureLog(layout.logFile)
  const args = ['-p', String(port), ...context.settings, '-c', `godwit.launch_id=${context.launchId}`]
  const child = await spawnPostmaster(layout, binaries.postgres, account, args)
  const stop = () => stopPostmaster(child, layout.clusterDir, binaries.pg_ctl)
  try {
    if ((await waitUntilReady(context, child, signal, deadline)) === 'ready') {
      await identifyServer(port, password)
      return { postmaster: { pid: child.pid, port, child, isGone: child.isGone } }
    }
  } catch (error) {
    if (!child.isGone()) {
      await stop()
      if (signal.aborted) throw error
      return { retry: `PostgreSQL does not let us in: ${(error as Error).message}` }
    }
  }
  if (!child.isGone()) {
    await stop()
    return { retry: `process ${child.pid} was not ready in time and was stopped.` }
  }
  const output = await readLogSince(layout.logFile, logBytes)
  if (output.includes(SHARED_MEMORY_IN_USE)) {
    const count = killOrphans(layout.clusterDir)
    if (count > 0) context.log.warn({ folder: layout.clusterDir, count }, 'ended the orphans of a dead postmaster')
  }
  if (PASSING.test(output)) return { retry: output }
  throw new Error(
    `The embedded PostgreSQL in ${layout.clusterDir} does not start (${child.ending()}). Its log ${layout.logFile} says: ` +
      (output || 'nothing'),
  )
}

/** Reads the status line that PostgreSQL keeps in its pid file: connecting before it is ready would fill its log. */
async function waitUntilReady(
  context: Context,
  child: Child,
  signal: AbortSignal,
  deadline: number,
): Promise<'ready' | 'ended' | 'late'> {
  const startedAt = Date.now()
  let noticedAt = startedAt
  for (;;) {
    if (child.isGone()) return 'ended'
    const pidFile = await readPidFile(context.layout.clusterDir)
    const own = typeof pidFile === 'object' && pidFile.pid === child.pid ? pidFile : undefined
    if (own?.status === 'ready') return 'ready'
    if (Date.now() > (own ? startedAt + RECOVERY_LIMIT_MS : deadline)) return 'late'
    if (Date.now() - noticedAt > RECOVERY_NOTICE_MS) {
      noticedAt = Date.now()
      context.log.info(
        { pid: child.pid, seconds: Math.round((noticedAt - startedAt) / 1000) },
        'PostgreSQL is recovering',
      )
    }
    await delay(POLL_MS, undefined, { signal })
  }
}
