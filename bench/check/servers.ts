import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { findFreePort } from '../../apps/server/src/embedded-postgres/launch.ts'

/** A server under load, as a process of its own. */
export type Server = {
  port: number
  pid: number
  /** CPU time used since its start, where the system tells (Linux). */
  readCpuSeconds: () => Promise<number | undefined>
  /** The same of the thread that answers. */
  readMainCpuSeconds: () => Promise<number | undefined>
  stop: () => Promise<void>
}

export const adminKey = `sb_api_${'bench-'.repeat(8)}`

/** The service as a user starts it, with its rate limit in place: the bench sends as many devices. */
export async function startGodwit(dataDir: string, environment: Record<string, string> = {}): Promise<Server> {
  const port = await findFreePort()
  const child = spawnServer('../../apps/server/src/main.ts', [], {
    PORT: String(port),
    HOST: '127.0.0.1',
    GODWIT_DATA_DIR: dataDir,
    GODWIT_ADMIN_API_KEY: adminKey,
    ...environment,
  })
  await waitForOutput(child, /Godwit is ready/)
  return toServer(child, port)
}

export async function startBareServer(answer: string): Promise<Server> {
  const child = spawnServer('./bare-server.ts', [answer], {})
  const [port] = await waitForOutput(child, /^\d+$/m)
  return toServer(child, Number(port))
}

/** As `npm start` does. */
const nodeFlags = ['--min-semi-space-size=16']

function spawnServer(file: string, parameters: string[], environment: Record<string, string>): ChildProcess {
  const path = new URL(file, import.meta.url).pathname
  return spawn(process.execPath, [...nodeFlags, path, ...parameters], {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

/** All that the server prints is read, also later, so that it never waits for us. */
function waitForOutput(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    let output = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      if (output.length < 100_000) output += chunk.toString()
      const match = pattern.exec(output)
      if (match !== null) resolve(match)
    })
    child.once('exit', (code) => reject(new Error(`a server exited with ${code}:\n${output}`)))
  })
}

function toServer(child: ChildProcess, port: number): Server {
  return {
    port,
    pid: child.pid ?? 0,
    readCpuSeconds: () => readCpuSeconds(`/proc/${child.pid}/stat`),
    // The first thread has the number of its process.
    readMainCpuSeconds: () => readCpuSeconds(`/proc/${child.pid}/task/${child.pid}/stat`),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

async function readCpuSeconds(file: string): Promise<number | undefined> {
  const stat = await readFile(file, 'utf8').catch(() => undefined)
  // proc(5): utime and stime are the 14th and 15th field, in ticks of 10 ms; the 2nd may contain spaces.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields === undefined ? undefined : (Number(fields[11]) + Number(fields[12])) / 100
}
