import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, createClient } from '@godwit/sdk'
import { findFreePort } from '../../src/embedded-postgres/launch.ts'

const main = new URL('../../src/main.ts', import.meta.url).pathname

export const adminKey = `sb_api_${'e2e-'.repeat(10)}`

/** The real thing: `main.ts` as a process, with its own embedded PostgreSQL, folder and port. */
export type ServerProcess = {
  baseUrl: string
  dataDir: string
  api: Client
  /** What it has printed since it was last started. */
  output: () => string
  start: () => Promise<void>
  /** SIGKILL: what a power cut, an out-of-memory killer or an impatient operator does. */
  kill: () => Promise<void>
  signal: (signal: NodeJS.Signals) => void
  pid: () => number
  /** The exit code, once it has exited. */
  exited: () => Promise<number | null>
  /** Stops it if it runs, and removes its folder. */
  remove: () => Promise<void>
}

export async function createServerProcess(
  environment: Record<string, string> = {},
  folder?: string,
): Promise<ServerProcess> {
  const dataDir = folder ?? (await mkdtemp(join(tmpdir(), 'godwit-e2e-')))
  const port = await findFreePort()
  const baseUrl = `http://127.0.0.1:${port}`
  let child: ChildProcess | undefined
  let output = ''

  const start = async () => {
    output = ''
    const started = spawn(process.execPath, [main], {
      env: {
        PATH: process.env.PATH,
        PORT: String(port),
        HOST: '127.0.0.1',
        GODWIT_PUBLIC_URL: baseUrl,
        GODWIT_DATA_DIR: dataDir,
        GODWIT_ADMIN_API_KEY: adminKey,
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child = started
    const isReady = new Promise<void>((resolve, reject) => {
      const collect = (chunk: Buffer) => {
        output += chunk.toString()
        if (output.includes('Godwit is ready')) resolve()
      }
      started.stdout.on('data', collect)
      started.stderr.on('data', collect)
      started.once('exit', (code) => reject(new Error(`the server exited with ${code}:\n${output}`)))
    })
    await isReady
  }
  const exited = async () => {
    if (child === undefined) return null
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    return child.exitCode
  }
  return {
    baseUrl,
    dataDir,
    api: createClient({ baseUrl, token: adminKey }),
    output: () => output,
    start,
    kill: async () => {
      child?.kill('SIGKILL')
      await exited()
    },
    signal: (signal) => child?.kill(signal),
    pid: () => child?.pid ?? 0,
    exited,
    remove: async () => {
      // A killed server leaves its database running; the next start adopts it, so that it can be stopped in order.
      if (child?.signalCode === 'SIGKILL') await start()
      child?.kill('SIGTERM')
      await exited()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
