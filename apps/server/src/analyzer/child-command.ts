import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Logger } from 'pino'

/** A program and its arguments, to which those of the analysis are added. */
export type ChildCommand = { file: string; args: string[] }

/**
 * What the kernel allows the process. Its data are those of Node as well: on x64 that alone reserves 560 MB, of which it
 * uses 40, so that this leaves some 400 MB to be used. Seconds of processor time, which are only reached when nobody is
 * there any more who looks at the clock. No file can be written and no core left.
 */
const caps = ['--data=1073741824', '--cpu=20:25', '--nofile=64', '--fsize=0', '--core=0']

export const defaultHeapMb = 128

/**
 * How to start the process that analyzes: with no rights but to read its own code, and where `prlimit` is there (Linux)
 * with caps of the kernel. A limit on the heap alone does not hold what is outside of it, such as buffers and images.
 */
export async function findChildCommand(options: { script: URL; heapMb: number; log: Logger }): Promise<ChildCommand> {
  const node = [`--max-old-space-size=${options.heapMb}`, '--no-warnings', ...listRights(options.script)]
  const capped = [...caps, process.execPath, ...node]
  const failure = process.platform === 'linux' ? await tryCommand('prlimit', capped) : 'this system has no prlimit'
  const script = fileURLToPath(options.script)
  if (failure === undefined) return { file: 'prlimit', args: [...capped, script] }
  options.log.warn(
    { reason: failure },
    'releases are analyzed without caps on memory and processor time: only the heap and the time are limited',
  )
  return { file: process.execPath, args: [...node, script] }
}

/** Why it does not work here, if so: Node may need more than the caps leave, or be forbidden to set them. */
async function tryCommand(file: string, args: string[]): Promise<string | undefined> {
  try {
    await promisify(execFile)(file, [...args, '--eval', '0'], { env: {}, cwd: '/', timeout: 10_000 })
    return undefined
  } catch (error) {
    return String(error).slice(0, 500)
  }
}

/**
 * No files, processes, threads or inspector for JavaScript, but for the files that the code itself is in. Native code is
 * not held by this: the decoder of images is native, and the caps are for it.
 */
function listRights(script: URL): string[] {
  const here = dirname(fileURLToPath(import.meta.url))
  const folders = new Set([here, dirname(fileURLToPath(script))])
  for (let folder = here; folder !== dirname(folder); folder = dirname(folder)) {
    const modules = join(folder, 'node_modules')
    if (existsSync(modules)) folders.add(modules)
  }
  return ['--permission', '--allow-addons', ...[...folders].map((folder) => `--allow-fs-read=${folder}`)]
}
