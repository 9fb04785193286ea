import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { Duplex } from 'node:stream'
import type { ChildCommand } from './child-command.ts'

/** The process that analyzes one archive. */
export type AnalysisChild = {
  channel: Duplex
  /** How it ended. Never rejects. */
  ended: Promise<ChildEnd>
  /** Ends it at once. Doing it again changes nothing. */
  kill: () => void
  /** The most memory that it had at a time. undefined: it has ended, or the system does not tell. */
  findPeakBytes: () => Promise<number | undefined>
  /** The first of what it wrote as errors. */
  errorText: () => string
}

export type ChildEnd = { code: number | null; signal: NodeJS.Signals | null; startFailure?: Error }

const maxErrorBytes = 8192

/** Nothing of the server's is given to it but the socket: no environment, no terminal, no folder, no other file. */
export function startChild(command: ChildCommand, args: string[]): AnalysisChild {
  const child = spawn(command.file, [...command.args, ...args], {
    cwd: '/',
    env: {},
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  })
  const channel = child.stdio[3] as Duplex
  // Who reads or writes it hears of it as well; here is only that nobody may be at it just then.
  channel.on('error', () => undefined)
  return {
    channel,
    ended: waitForEnd(child),
    kill: () => void child.kill('SIGKILL'),
    findPeakBytes: () => findPeakBytes(child.pid),
    errorText: collectText(child),
  }
}

/** What a process is told of its own peak begins with that of the one that started it. */
async function findPeakBytes(pid: number | undefined): Promise<number | undefined> {
  if (pid === undefined || process.platform !== 'linux') return undefined
  const status = await readFile(`/proc/${pid}/status`, 'latin1').catch(() => '')
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(status) ?? []
  return kilobytes === undefined ? undefined : Number(kilobytes) * 1024
}

async function waitForEnd(child: ChildProcess): Promise<ChildEnd> {
  try {
    const [code, signal] = await once(child, 'exit')
    return { code, signal }
  } catch (error) {
    return { code: null, signal: null, startFailure: error as Error }
  }
}

/** All of it is read, or the child would wait for ever to write on. */
function collectText(child: ChildProcess): () => string {
  let text = ''
  child.stderr?.on('error', () => undefined)
  child.stderr?.on('data', (chunk: Buffer) => {
    if (text.length < maxErrorBytes) text += chunk.toString('latin1').slice(0, maxErrorBytes - text.length)
  })
  return () => text
}
