import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { buildEnvironment } from './binaries.ts'

const POLL_MS = 10
const FAST_TIMEOUT_MS = 10_000
/** On SIGQUIT the postmaster itself kills what does not end within 5 s. */
const IMMEDIATE_TIMEOUT_MS = 10_000

export type Stoppable = { pid: number; isGone(): boolean }

/** Ends a postmaster: its clients are cut off and everything is written (fast shutdown); failing that, at once. */
export async function stopPostmaster(postmaster: Stoppable, clusterDir: string, pgCtl: string): Promise<void> {
  if (postmaster.isGone()) return
  await signalPostmaster(postmaster.pid, 'INT', pgCtl)
  if (await waitUntilGone(postmaster, FAST_TIMEOUT_MS)) return
  await signalPostmaster(postmaster.pid, 'QUIT', pgCtl)
  if (await waitUntilGone(postmaster, IMMEDIATE_TIMEOUT_MS)) return
  throw new Error(`The embedded PostgreSQL in ${clusterDir} does not stop. Kill process ${postmaster.pid}.`)
}

async function signalPostmaster(pid: number, name: 'INT' | 'QUIT', pgCtl: string): Promise<void> {
  if (process.platform === 'win32') {
    // Windows has no signals: process.kill would end the process on the spot, while pg_ctl knows PostgreSQL's pipe.
    // It fails when the process is gone already, which the wait that follows finds out.
    await promisify(execFile)(pgCtl, ['kill', name, String(pid)], { env: buildEnvironment() }).catch(() => {})
    return
  }
  try {
    process.kill(pid, `SIG${name}`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

async function waitUntilGone(postmaster: Stoppable, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs
  // Removing postmaster.pid is the last thing that it does, so there is no file to wait for once it is gone.
  while (!postmaster.isGone()) {
    if (Date.now() > deadline) return false
    await delay(POLL_MS)
  }
  return true
}
