import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findFreePort } from '../../src/embedded-postgres/launch.ts'

const startTimeoutMs = 15_000

/** A real S3 server, on a folder and a port of its own, with one bucket. It verifies signatures. */
export type S3Server = {
  /** `http://127.0.0.1:PORT`. */
  endpoint: string
  bucket: string
  credentials: { AWS_ACCESS_KEY_ID: string; AWS_SECRET_ACCESS_KEY: string }
  /** `GODWIT_BLOBS` for a place in the bucket that is nobody else's. */
  newBlobsSetting: (parameters?: Record<string, string>) => string
  /** Names of the objects below a prefix; without one, of all. */
  listObjects: (prefix?: string) => Promise<string[]>
  start: () => Promise<void>
  /** SIGKILL: connections are refused from then on. What was stored stays. */
  kill: () => Promise<void>
  /** SIGSTOP: it takes connections, and never answers. Resolves once all of it stands still. */
  pause: () => Promise<void>
  resume: () => void
  /** Ends it and removes its folder. */
  remove: () => Promise<void>
}

/** Started; `program` is what `buildS3Server` has built. This process finds the credentials where the AWS SDK looks first: in its environment. */
export async function runS3Server(program: string): Promise<S3Server> {
  const dir = await mkdtemp(join(tmpdir(), 'godwit-s3-'))
  const bucket = 'godwit'
  await mkdir(join(dir, bucket))
  const port = await findFreePort()
  const endpoint = `http://127.0.0.1:${port}`
  const credentials = {
    AWS_ACCESS_KEY_ID: randomBytes(8).toString('hex'),
    AWS_SECRET_ACCESS_KEY: randomBytes(16).toString('hex'),
  }
  Object.assign(process.env, credentials)
  let child: ChildProcess | undefined
  const start = async () => {
    const { AWS_ACCESS_KEY_ID: access, AWS_SECRET_ACCESS_KEY: secret } = credentials
    const address = `127.0.0.1:${port}`
    child = spawn(program, ['--port', address, '--quiet', '--virtual-domain', `localhost:${port}`, 'posix', dir], {
      env: { ROOT_ACCESS_KEY: access, ROOT_SECRET_KEY: secret },
      stdio: 'ignore',
    })
    await waitUntilAnswers(endpoint)
  }
  const kill = async () => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  await start()
  return {
    endpoint,
    bucket,
    credentials,
    newBlobsSetting: (parameters = {}) =>
      `s3://${bucket}/${randomBytes(4).toString('hex')}?${new URLSearchParams({ endpoint, ...parameters })}`,
    async listObjects(prefix = '') {
      const entries = await readdir(join(dir, bucket), { recursive: true, withFileTypes: true })
      return entries
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(join(dir, bucket).length + 1))
        .filter((name) => name.startsWith(prefix))
    },
    start,
    kill,
    async pause() {
      child?.kill('SIGSTOP')
      while (!(await isStopped(child?.pid))) await sleep(5)
    },
    resume: () => child?.kill('SIGCONT'),
    async remove() {
      await kill()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

async function waitUntilAnswers(endpoint: string): Promise<void> {
  const deadline = performance.now() + startTimeoutMs
  for (;;) {
    // Whoever does not sign is refused, which is an answer.
    if (
      await fetch(endpoint).then(
        () => true,
        () => false,
      )
    )
      return
    if (performance.now() > deadline) throw new Error('the S3 server did not start')
    await sleep(50)
  }
}

/** Threads stop one by one after the signal. */
async function isStopped(pid: number | undefined): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`)
  const states = await Promise.all(threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8')))
  return states.every((stat) => / T /.test(stat.slice(stat.lastIndexOf(')'))))
}
