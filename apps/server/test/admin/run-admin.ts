import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

const main = new URL('../../src/admin/main.ts', import.meta.url).pathname

export type AdminResult = { code: number | null; stdout: string; stderr: string }

/** An operator's command as a process, with these settings and nothing else of the environment. */
export async function runAdmin(
  environment: Record<string, string>,
  args: string[],
  options: { input?: string } = {},
): Promise<AdminResult> {
  const child = spawn(process.execPath, [main, ...args], { env: { PATH: process.env.PATH, ...environment } })
  child.stdin.end(options.input ?? '')
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code))
  })
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exited])
  return { code, stdout, stderr }
}
