import { type ChildProcess, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, afterEach } from 'vitest'
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '../../src/embedded-postgres/index.ts'
import { silentLog } from './silent-log.ts'

const folders: string[] = []
const databases: EmbeddedPostgres[] = []
const children: ChildProcess[] = []
let prepared: Promise<string> | undefined

// Also after a failure: whatever a test left running goes with its folder.
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await Promise.allSettled(databases.splice(0).map((database) => database.stop()))
  for (const folder of folders.splice(0)) {
    await waitFor(`no process in ${folder}`, () => {
      const pids = listProcessesIn(folder)
      for (const pid of pids) process.kill(pid, 'SIGKILL')
      return pids.length === 0
    })
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
  }
})

afterAll(async () => {
  if (prepared) rmSync(await prepared, { recursive: true, force: true })
})

export function makeFolder(): string {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'embedded-postgres-test-')))
  folders.push(folder)
  return folder
}

/** A folder with a cluster in it, copied: initdb would be most of a test's time. */
export async function makePreparedFolder(): Promise<string> {
  prepared ??= prepareFolder()
  const folder = makeFolder()
  cpSync(await prepared, folder, { recursive: true })
  return folder
}

async function prepareFolder(): Promise<string> {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'embedded-postgres-test-')))
  const database = await startEmbeddedPostgres({ dataDir: folder, log: silentLog, durable: false })
  await database.stop()
  return folder
}

export async function start(
  dataDir: string,
  options: Partial<EmbeddedPostgresOptions> = {},
): Promise<EmbeddedPostgres> {
  const database = await startEmbeddedPostgres({ dataDir, log: silentLog, durable: false, ...options })
  databases.push(database)
  return database
}

export function spawnSupervisor(dataDir: string, ...flags: 'durable'[]): ChildProcess {
  const program = fileURLToPath(new URL('./run-supervisor.ts', import.meta.url))
  const child = spawn(process.execPath, [program, dataDir, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  return child
}

/** A supervisor in another process, once its database is up. */
export async function startElsewhere(dataDir: string, ...flags: 'durable'[]) {
  const child = spawnSupervisor(dataDir, ...flags)
  let output = ''
  child.stdout?.on('data', (chunk) => {
    output += chunk
  })
  await waitFor('the other process to start', () => output.includes('\n') || child.exitCode !== null)
  const database = JSON.parse(output) as { connectionString: string; adopted: boolean }
  return { ...database, kill: () => killAndWait(child) }
}

export async function killAndWait(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await waitFor('the killed process to end', () => child.signalCode !== null)
}

export async function query(connectionString: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

export async function waitFor(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  timeoutMs = 15_000,
): Promise<void> {
  const deadline = Date.now() + timeoutMs
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error(`gave up waiting for ${what}`)
    await delay(10)
  }
}

export async function canQuery(connectionString: string): Promise<boolean> {
  return query(connectionString, 'select 1').then(
    () => true,
    () => false,
  )
}

export function readPostmasterPid(dataDir: string): number {
  return Number(readFileSync(path.join(dataDir, 'cluster', 'postmaster.pid'), 'utf8').split('\n')[0])
}

export function listUnfinished(dataDir: string): string[] {
  return existsSync(dataDir) ? readdirSync(dataDir).filter((name) => name.startsWith('cluster.new-')) : []
}

/** Every living process that works below the folder: postmaster, backends, initdb. */
export function listProcessesIn(folder: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      try {
        return Number.isInteger(pid) && readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)
      } catch {
        return false
      }
    })
}

/** A dead child of this process's child, which never asks for its exit code. */
export async function makeZombie(): Promise<number> {
  const child = spawn('sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await waitFor('the pid of the zombie', () => output.includes('\n'))
  const pid = Number(output)
  await waitFor('the zombie', () => readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z '))
  return pid
}
