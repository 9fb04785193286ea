import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sha256 } from '../support/publishing.ts'
import { adminKey, createServerProcess, type ServerProcess } from '../support/server-process.ts'

let server: ServerProcess

beforeAll(async () => {
  server = await createServerProcess({ GODWIT_ADMIN_API_KEY: '', GODWIT_ADMIN_EMAIL: 'boss@example.com' })
  await server.start()
})
afterAll(() => server.remove())

async function readPostmasterPid(): Promise<number> {
  const text = await readFile(join(server.dataDir, 'postgres', 'cluster', 'postmaster.pid'), 'utf8')
  return Number(text.split('\n', 1)[0])
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`)
}

function stop(signal: NodeJS.Signals): Promise<number | null> {
  server.signal(signal)
  return server.exited()
}

describe('the process', () => {
  let key = ''

  it('prints on an empty database the URL, the account, the key, and what to type next', async () => {
    const output = server.output()
    key = /SHOREBIRD_TOKEN=(sb_api_[\w-]+)/.exec(output)?.[1] ?? ''
    expect(output).toContain(`Godwit is ready at ${server.baseUrl}`)
    expect(output).toContain('boss@example.com')
    expect(output).toContain(`export SHOREBIRD_HOSTED_URL=${server.baseUrl}`)
    expect(output).toContain(`base_url: ${server.baseUrl}`)
    const response = await fetch(`${server.baseUrl}/api/v1/users/me`, { headers: { authorization: `Bearer ${key}` } })
    expect(await response.json()).toMatchObject({ email: 'boss@example.com', has_active_subscription: true })
  })

  it('on Ctrl-C finishes the requests that run, exits with 0 and leaves no postmaster', async () => {
    const postmaster = await readPostmasterPid()
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const call = async (method: string, path: string, body: unknown) => {
      const response = await fetch(`${server.baseUrl}/api/v1${path}`, { method, headers, body: JSON.stringify(body) })
      return (await response.json()) as never
    }
    const organizations = await fetch(`${server.baseUrl}/api/v1/organizations`, { headers })
    const listed = (await organizations.json()) as { organizations: { organization: { id: number } }[] }
    const organizationId = listed.organizations[0]?.organization.id
    const app: { id: string } = await call('POST', '/apps', { display_name: 'A', organization_id: organizationId })
    const { release }: { release: { id: number } } = await call('POST', `/apps/${app.id}/releases`, {
      version: '1',
      flutter_revision: 'r',
    })
    const bytes = Buffer.alloc(100_000, 'x')
    const artifact = { arch: 'aab', platform: 'android', hash: sha256(bytes), size: bytes.length, can_sideload: true }
    const { url }: { url: string } = await call('POST', `/apps/${app.id}/releases/${release.id}/artifacts`, artifact)

    const upload = request(url, { method: 'POST', headers: { 'content-length': String(bytes.length) } })
    const answered = new Promise<number | undefined>((resolve, reject) => {
      upload.on('response', (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      upload.on('error', reject)
    })
    await new Promise<void>((resolve) => {
      upload.write(bytes.subarray(0, 50_000), () => resolve())
    })
    await fetch(`${server.baseUrl}/healthz`)
    server.signal('SIGINT')
    // Under npm the same Ctrl-C arrives a second time; it must not cut the upload.
    server.signal('SIGINT')
    await expect.poll(() => server.output()).toContain('finishing the requests')
    upload.end(bytes.subarray(50_000))
    expect(await answered).toBe(200)
    expect(await server.exited()).toBe(0)
    expect(isAlive(postmaster)).toBe(false)
  })

  it('reuses everything on the next start, and does not print the key again', async () => {
    await server.start()
    expect(server.output()).toContain('Godwit is ready')
    expect(server.output()).not.toContain('sb_api_')
    const response = await fetch(`${server.baseUrl}/api/v1/apps`, { headers: { authorization: `Bearer ${key}` } })
    expect(await response.json()).toMatchObject({ apps: [{ display_name: 'A', platforms: ['android'] }] })
    expect(await stop('SIGTERM')).toBe(0)
  })

  it('adopts the database that a SIGKILL left behind', async () => {
    await server.start()
    const postmaster = await readPostmasterPid()
    await server.kill()
    expect(isAlive(postmaster)).toBe(true)
    await server.start()
    expect(await readPostmasterPid()).toBe(postmaster)
    expect((await fetch(`${server.baseUrl}/readyz`)).status).toBe(200)
  })

  it('stops cleanly when it is told to while it starts', async () => {
    expect(await stop('SIGTERM')).toBe(0)
    const starting = server.start()
    const pidFile = join(server.dataDir, 'postgres', 'cluster', 'postmaster.pid')
    await expect.poll(() => existsSync(pidFile), { timeout: 10_000, interval: 5 }).toBe(true)
    server.signal('SIGINT')
    const postmaster = await readPostmasterPid()
    await starting
    expect(await server.exited()).toBe(0)
    expect(isAlive(postmaster)).toBe(false)
  })

  it('refuses settings that are wrong, naming each, and prints no stack', async () => {
    const wrong = await createServerProcess({ PORT: 'http', GODWIT_DEFAULT_PLAN: 'gold' })
    await expect(wrong.start()).rejects.toThrow(/PORT: .*\n {2}GODWIT_DEFAULT_PLAN: /)
    expect(wrong.output()).not.toContain('    at ')
    expect(wrong.output()).not.toContain(adminKey)
    await wrong.remove()
  })
})
