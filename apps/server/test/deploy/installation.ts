import { execFile, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, copyFile, cp, link, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findFreePort } from '../../src/embedded-postgres/launch.ts'
import { readDockerfile, repository } from './read-dockerfile.ts'

/** Who runs the service when the tests run as root. It must have a name, or PostgreSQL refuses; 10001 has none here. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined

export type Service = {
  baseUrl: string
  port: number
  output: () => string
  /** Ends with 0 when the health check of the image says that it is healthy. */
  checkHealth: () => Promise<number | null>
  /** Sends the signal, and resolves with the code that it ends with. */
  stop: (signal?: string) => Promise<number | null>
  start: () => Promise<void>
}

export type Installation = {
  /** Runs a start command in it, with exactly these settings. Services of one name have one data folder, in turn. */
  createService: (command: string[], settings: Record<string, string>, name?: string) => Promise<Service>
  remove: () => Promise<void>
}

/**
 * What the image contains, made by the commands of its Dockerfile in a folder that whoever runs the service cannot
 * write to. `/app` is that folder; the Node of the tests is where the image and the systemd unit have theirs.
 */
export async function createInstallation(): Promise<Installation> {
  const root = await mkdtemp(join(tmpdir(), 'godwit-deploy-'))
  await chmod(root, 0o755)
  const app = join(root, 'app')
  const { build, image } = readDockerfile()
  for (const { sources, target } of build.copies) {
    for (const source of sources) {
      const isFolder = target === source
      await cp(join(repository, source), isFolder ? join(app, target) : join(app, target, source.replace(/.*\//, '')), {
        recursive: true,
      })
    }
  }
  const environment = { ...process.env, npm_config_prefer_offline: 'true', NODE_ENV: '' }
  for (const command of build.commands) {
    const here = command.replaceAll('/app', app)
    await promisify(execFile)('sh', ['-c', here], { cwd: app, env: environment, maxBuffer: 1e8 })
  }
  const bin = join(app, 'node_modules/node/bin')
  await mkdir(bin, { recursive: true })
  await link(process.execPath, join(bin, 'node')).catch(() => copyFile(process.execPath, join(bin, 'node')))
  if (nobody === undefined) await promisify(execFile)('chmod', ['-R', 'a-w', app])

  const stops: (() => Promise<unknown>)[] = []
  const createService: Installation['createService'] = async (command, settings, name = 'data') => {
    const port = await findFreePort()
    const dataDir = join(root, name)
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    if (nobody !== undefined) await chown(dataDir, nobody.uid, nobody.gid)
    const options: SpawnOptions = {
      cwd: app,
      ...nobody,
      env: {
        ...image.environment,
        ...settings,
        PATH: `${bin}:/usr/bin:/bin`,
        TMPDIR: dataDir,
        HOST: '127.0.0.1',
        PORT: String(port),
        GODWIT_DATA_DIR: dataDir,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    }
    const service = runService(command, { options, baseUrl: `http://127.0.0.1:${port}`, port })
    stops.push(() => service.stop('SIGKILL'))
    return service
  }
  const remove = async () => {
    for (const stop of stops) await stop()
    await promisify(execFile)('chmod', ['-R', 'u+w', app])
    await rm(root, { recursive: true, force: true })
  }
  return { createService, remove }
}

function runService(
  command: string[],
  { options, baseUrl, port }: { options: SpawnOptions; baseUrl: string; port: number },
): Service {
  const [file = '', ...args] = command
  let child: ReturnType<typeof spawn> | undefined
  let output = ''
  const start = async () => {
    const started = spawn(file, args, options)
    child = started
    const isReady = new Promise<void>((resolve, reject) => {
      const collect = (chunk: Buffer) => {
        output += chunk.toString()
        if (output.includes('Godwit is ready')) resolve()
      }
      output = ''
      started.stdout?.on('data', collect)
      started.stderr?.on('data', collect)
      started.once('error', reject)
      started.once('exit', (code, signal) => reject(new Error(`ended with ${code ?? signal}:\n${output}`)))
    })
    await isReady
  }
  const stop = async (signal = 'SIGTERM') => {
    if (child === undefined) return null
    const isRunning = child.exitCode === null && child.signalCode === null
    if (isRunning) {
      const ended = once(child, 'exit')
      child.kill(signal as NodeJS.Signals)
      await ended
    }
    return child.exitCode
  }
  const checkHealth = async () => {
    const [program = '', ...rest] = readDockerfile().image.healthCheck
    const check = spawn(program, rest, options)
    await once(check, 'exit')
    return check.exitCode
  }
  return { baseUrl, port, output: () => output, start, stop, checkHealth }
}
