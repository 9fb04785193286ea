import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
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
    expect(output).toContain(`export AUTH_SERVICE_URL=${server.baseUrl}`)
    const response = await fetch(`${server.baseUrl}/api/v1/users/me`, { headers: { authorization: `Bearer ${key}` } })
    expect(await response.json()).toMatchObject({ email: 'boss@example.com', has_active_subscription: true })
  })

  it('prints a password that signs in', async () => {
    const password = /Password +(\S+) +\(shown only now\)/.exec(server.output())?.[1] ?? ''
    const page = await fetch(`${server.baseUrl}/sign-in`)
    const cookie = page.headers
      .getSetCookie()
      .map((line) => line.split(';', 1)[0])
      .join('; ')
    const token = /name="form_token" value="([^"]+)"/.exec(await page.text())?.[1] ?? ''
    const response = await fetch(`${server.baseUrl}/sign-in`, {
      method: 'POST',
      redirect: 'manual',
      headers: { cookie },
      body: new URLSearchParams({ form_token: token, email: 'boss@example.com', password, return_to: '/account' }),
    })
    expect({ status: response.status, location: response.headers.get('location') }).toEqual({
      status: 303,
      location: '/account',
    })
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
    // Whether it becomes ready first is a matter of milliseconds.
    const starting = server.start().catch(() => undefined)
    const pidFile = join(server.dataDir, 'postgres', 'cluster', 'postmaster.pid')
    await expect.poll(() => existsSync(pidFile), { timeout: 10_000, interval: 5 }).toBe(true)
    server.signal('SIGINT')
    const postmaster = await readPostmasterPid()
    await starting
    expect(await server.exited()).toBe(0)
    expect(isAlive(postmaster)).toBe(false)
  })

  it('lives on when PostgreSQL is killed under its writes, and loses nothing that it acknowledged', async () => {
    await server.start()
    const headers = { authorization: `Bearer ${key}` }
    const list = async (path: string) => (await fetch(`${server.baseUrl}/api/v1${path}`, { headers })).json() as never
    const { apps }: { apps: { app_id: string }[] } = await list('/apps')
    const path = `/apps/${apps[0]?.app_id}/channels`
    const acknowledged: string[] = []
    const statuses = new Set<number>()
    let isOver = false
    const write = async (writer: number) => {
      for (let count = 0; !isOver; count += 1) {
        const channel = `channel-${writer}-${count}`
        const body = JSON.stringify({ channel })
        const response = await fetch(`${server.baseUrl}/api/v1${path}`, { method: 'POST', headers, body })
        await response.arrayBuffer()
        statuses.add(response.status)
        if (response.status === 200) acknowledged.push(channel)
      }
    }
    const writers = Promise.all(Array.from({ length: 8 }, (_, writer) => write(writer)))
    for (let round = 0; round < 3; round += 1) {
      const before = acknowledged.length
      await expect.poll(() => acknowledged.length, { timeout: 15_000 }).toBeGreaterThan(before + 20)
      process.kill(await readPostmasterPid(), 'SIGKILL')
    }
    const before = acknowledged.length
    await expect.poll(() => acknowledged.length, { timeout: 15_000 }).toBeGreaterThan(before + 20)
    isOver = true
    await writers
    const channels: { name: string }[] = await list(path)
    expect(channels.map(({ name }) => name)).toEqual(expect.arrayContaining(acknowledged))
    expect([...statuses].toSorted()).toEqual([200, 503])
  })

  it('resets no client on SIGTERM: each is told in an answer to close its connection', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 20 })
    const failures: string[] = []
    let answered = 0
    const ask = (): Promise<boolean> =>
      new Promise((resolve) => {
        const sent = request(`${server.baseUrl}/healthz`, { agent }, (response) => {
          answered += 1
          response.resume().once('end', () => resolve(response.headers.connection !== 'close'))
        })
        sent.once('error', ({ message }) => {
          failures.push(message)
          resolve(false)
        })
        sent.end()
      })
    const keepAsking = async () => {
      while (await ask());
    }
    const clients = Promise.all(Array.from({ length: 20 }, keepAsking))
    await expect.poll(() => answered, { timeout: 5000 }).toBeGreaterThan(500)
    expect(await stop('SIGTERM')).toBe(0)
    await clients
    expect(failures).toEqual([])
  })

  it('cuts what still runs when it is told twice, and leaves no postmaster then either', async () => {
    await server.start()
    const postmaster = await readPostmasterPid()
    const headers = { authorization: `Bearer ${key}`, 'content-length': '99' }
    const endless = request(`${server.baseUrl}/api/v1/apps`, { method: 'POST', headers })
    const cut = new Promise((resolve) => endless.once('error', resolve))
    endless.write('{')
    await fetch(`${server.baseUrl}/healthz`)
    server.signal('SIGTERM')
    await expect.poll(() => server.output()).toContain('finishing the requests')
    await expect
      .poll(
        () => {
          server.signal('SIGTERM')
          return server.output()
        },
        { timeout: 5000, interval: 300 },
      )
      .toContain('told again to stop')
    await cut
    expect(await server.exited()).toBe(0)
    expect(isAlive(postmaster)).toBe(false)
  })

  it('says in one line that its port is taken, and leaves no postmaster', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const other = await createServerProcess({ PORT: String(port) })
    await expect(other.start()).rejects.toThrow(/cannot start.*EADDRINUSE/)
    expect(other.output()).not.toContain('    at ')
    expect(existsSync(join(other.dataDir, 'postgres', 'cluster', 'postmaster.pid'))).toBe(false)
    taken.close()
    await other.remove()
  })

  it('refuses settings that are wrong, naming each, and prints no stack', async () => {
    const wrong = await createServerProcess({ PORT: 'http', GODWIT_DEFAULT_PLAN: 'gold' })
    await expect(wrong.start()).rejects.toThrow(/PORT: .*\n {2}GODWIT_DEFAULT_PLAN: /)
    expect(wrong.output()).not.toContain('    at ')
    expect(wrong.output()).not.toContain(adminKey)
    await wrong.remove()
  })
})
