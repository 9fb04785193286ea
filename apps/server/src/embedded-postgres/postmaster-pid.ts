import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'

/** postmaster.pid, as PostgreSQL's miscadmin.h lists its lines. */
export type PidFile = { pid: number; port: number | undefined; status: string }

/** Undefined when there is none, 'incomplete' while it is being written or after a crash that kept only its name. */
export async function readPidFile(clusterDir: string): Promise<PidFile | 'incomplete' | undefined> {
  let text: string
  try {
    text = await readFile(path.join(clusterDir, 'postmaster.pid'), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const lines = text.split('\n')
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid < 1) return 'incomplete'
  return { pid, port: Number(lines[3]) || undefined, status: lines[7]?.trim() || 'starting' }
}

/** Whether a pid still means the postmaster of this cluster. 'foreign' is a reused pid; a zombie has let go of everything. */
export type PidState = 'alive' | 'gone' | 'zombie' | 'foreign'

export function inspectPid(pid: number, clusterDir: string): PidState {
  if (process.platform !== 'linux') return canSignal(pid) ? 'alive' : 'gone'
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return 'gone'
  }
  // "pid (name) state …", and a name may hold parentheses and spaces.
  const nameEnd = stat.lastIndexOf(')')
  const state = stat[nameEnd + 2]
  if (state === 'Z' || state === 'X') return 'zombie'
  // A container that is started again hands out the same low pids: the file then often names a thread of this process.
  if (stat.slice(stat.indexOf('(') + 1, nameEnd) !== 'postgres') return 'foreign'
  const folder = readWorkingFolder(pid)
  return folder === undefined || folder === clusterDir ? 'alive' : 'foreign'
}

/**
 * Ends the backends of a postmaster that is dead, and says how many there were. They end by themselves when they next
 * wait for something, which a long calculation may not do for hours, and until then they keep the shared memory.
 */
export function killOrphans(clusterDir: string): number {
  if (process.platform !== 'linux') return 0
  const pids = readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && inspectPid(pid, clusterDir) === 'alive' && readWorkingFolder(pid) === clusterDir)
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // Gone meanwhile.
    }
  }
  return pids.length
}

/** Every process of PostgreSQL works in its data folder. Reading it takes CAP_SYS_PTRACE when the account differs. */
function readWorkingFolder(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return undefined
  }
}

function canSignal(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
