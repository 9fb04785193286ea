import { readdirSync, writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import type pg from 'pg'

/** Of two that want the same core, the other one gets ten times as much. Less, and others would wait for our locks. */
const niceness = constants.priority.PRIORITY_BELOW_NORMAL

/**
 * Where a machine is busy, the process that answers devices goes before this one. Linux gives each thread a niceness of its
 * own, by the number that it has in /proc, among those of its session, and another to the session among all sessions where
 * it shares the processor by sessions (sched(7), autogroups). Elsewhere all stay equal.
 */
export function yieldToChecks(): void {
  try {
    for (const thread of readdirSync('/proc/self/task')) setPriority(Number(thread), niceness)
    lowerSession(process.pid)
  } catch {
    // Nothing depends on it.
  }
}

/**
 * What PostgreSQL does for this process is half of the work, and yields as well where it runs on this machine: a backend
 * is a session of its own.
 */
export async function letBackendYield(client: pg.PoolClient): Promise<void> {
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    if (rows[0] === undefined) return
    setPriority(rows[0].pid, niceness)
    lowerSession(rows[0].pid)
  } catch {
    // Nothing depends on it.
  }
}

function lowerSession(pid: number): void {
  writeFileSync(`/proc/${pid}/autogroup`, String(niceness))
}
