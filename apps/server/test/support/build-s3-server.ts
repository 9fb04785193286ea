import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const version = 'v1.8.0'
const buildTimeoutMs = 10 * 60_000

/** Path of the program, or why there is none. */
export type S3ServerBuild = { program: string } | { missing: string }

/**
 * versitygw, an S3 server that verifies signatures, built once and kept in the user's cache folder. It takes a Go compiler
 * and, the first time, the module proxy.
 */
export async function buildS3Server(): Promise<S3ServerBuild> {
  const cacheDir = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'godwit-tests')
  const program = join(cacheDir, `versitygw-${version}`)
  if (existsSync(program)) return { program }
  await mkdir(cacheDir, { recursive: true })
  // Two runs may build at the same time.
  const buildDir = await mkdtemp(join(cacheDir, 'build-'))
  try {
    const run = promisify(execFile)
    const env = { ...process.env, GOBIN: buildDir, CGO_ENABLED: '0' }
    await run('go', ['install', `github.com/versity/versitygw/cmd/versitygw@${version}`], {
      env,
      timeout: buildTimeoutMs,
    })
    await rename(join(buildDir, 'versitygw'), program)
    return { program }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return { missing: code === 'ENOENT' ? 'there is no Go compiler' : `versitygw could not be built: ${message}` }
  } finally {
    await rm(buildDir, { recursive: true, force: true })
  }
}
