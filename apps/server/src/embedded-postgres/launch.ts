import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, openSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { type Account, runAs } from './account.ts'
import { buildEnvironment } from './binaries.ts'
import type { Layout } from './layout.ts'

/** A process of ours that is, or is becoming, the postmaster. */
export type Child = {
  pid: number
  isGone(): boolean
  /** How it ended; undefined while it runs. */
  ending(): string | undefined
  onEnd(listener: () => void): void
}

/** Everything about the server except where it is: a postmaster with other settings is replaced, not adopted. */
export function listSettings(options: { durable: boolean; maxConnections: number }): string[] {
  const settings = [
    'listen_addresses=127.0.0.1',
    // A socket's path may have 107 bytes, which a data folder soon exceeds, and Windows has none.
    'unix_socket_directories=',
    `max_connections=${options.maxConnections}`,
    'cluster_name=godwit',
    'timezone=UTC',
    // The supervisor reads the log to tell a busy folder from a broken one.
    'lc_messages=C',
    'log_timezone=UTC',
    'log_destination=stderr',
    'logging_collector=off',
    'log_checkpoints=off',
    // Statements and the details of an error hold customers' values. The service sees them in the error it gets.
    'log_min_error_statement=panic',
    'log_error_verbosity=terse',
    ...(options.durable ? [] : ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off']),
  ]
  return settings.flatMap((setting) => ['-c', setting])
}

/** Names what a postmaster runs: these settings in this build of PostgreSQL. */
export function nameLaunch(postgres: string, settings: string[]): string {
  const { mtimeMs, size } = statSync(postgres)
  return createHash('sha256')
    .update(JSON.stringify([postgres, mtimeMs, size, settings]))
    .digest('hex')
    .slice(0, 16)
}

export function spawnPostmaster(
  layout: Layout,
  postgres: string,
  account: Account | undefined,
  args: string[],
): Promise<Child> {
  const command = runAs(account, postgres, ['-D', layout.clusterDir, ...args])
  // A file of its own and not our pipe: the postmaster may live longer than this process.
  const log = openSync(layout.logFile, 'a', 0o600)
  try {
    const child = spawn(command.file, command.args, {
      cwd: layout.clusterDir,
      env: buildEnvironment(),
      stdio: ['ignore', log, log],
      // A session of its own, so that Ctrl-C in the terminal reaches only this process, which stops the database last.
      detached: true,
      windowsHide: true,
    })
    child.unref()
    return new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('spawn', () => {
        const ending = () => child.signalCode ?? (child.exitCode === null ? undefined : `exit code ${child.exitCode}`)
        resolve({
          pid: child.pid as number,
          isGone: () => ending() !== undefined,
          ending,
          onEnd: (listener) => child.once('exit', listener),
        })
      })
    })
  } finally {
    closeSync(log)
  }
}

/** Free a moment ago: somebody may take it before PostgreSQL does. */
export function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() =>
        address && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port')),
      )
    })
  })
}
