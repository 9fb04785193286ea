import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import { findFreePort } from '../../src/embedded-postgres/launch.ts'
import { repository } from './read-dockerfile.ts'

export type ReverseProxy = {
  send: (
    path: string,
    options?: { method?: string; headers?: Record<string, string>; body?: string },
  ) => Promise<{ status: number; body: string }>
  stop: () => Promise<void>
}

/** The one of the compose files, or a later one: 2.6 gives up at once when no instance can be asked. */
export function hasCaddy(): boolean {
  try {
    const version = execFileSync('caddy', ['version'], { encoding: 'utf8' })
    return Number(/^v?2\.(\d+)/.exec(version)?.[1]) >= 11
  } catch {
    return false
  }
}

/** Caddy with the settings of a compose file, for `localhost`, with certificates of its own making. */
export async function runProxy(settings: Record<string, string>): Promise<ReverseProxy> {
  const dir = await mkdtemp(join(tmpdir(), 'godwit-caddy-'))
  const httpsPort = await findFreePort()
  const config = ['--config', `${repository}deploy/Caddyfile`, '--adapter', 'caddyfile']
  const caddy = spawn('caddy', ['run', ...config], {
    env: {
      PATH: process.env.PATH,
      ...settings,
      GODWIT_HTTP_PORT: String(await findFreePort()),
      GODWIT_HTTPS_PORT: String(httpsPort),
      CADDY_ADMIN: `unix/${dir}/admin.sock`,
      XDG_DATA_HOME: dir,
      XDG_CONFIG_HOME: dir,
    },
    stdio: 'ignore',
  })
  const stop = async () => {
    const ended = once(caddy, 'exit')
    if (caddy.kill()) await ended
    await rm(dir, { recursive: true, force: true })
  }
  try {
    const ca = await vi.waitUntil(() => readCertificate(dir), { timeout: 20_000 })
    const send = createSender(httpsPort, ca)
    const isUp = async () => (await send('/healthz').catch(() => undefined))?.status === 200
    await vi.waitUntil(isUp, { timeout: 20_000 })
    return { send, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function readCertificate(dir: string): Promise<Buffer | undefined> {
  return readFile(join(dir, 'caddy/pki/authorities/local/root.crt')).catch(() => undefined)
}

function createSender(port: number, ca: Buffer | undefined): ReverseProxy['send'] {
  const agent = new Agent({ keepAlive: true, ca })
  return async (path, { method = 'GET', headers = {}, body } = {}) => {
    const sent = request({ agent, host: 'localhost', port, path, method, headers })
    sent.end(body)
    const [response] = await once(sent, 'response')
    let text = ''
    for await (const chunk of response) text += chunk
    return { status: response.statusCode, body: text }
  }
}
