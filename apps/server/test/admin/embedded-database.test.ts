import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createServerProcess, type ServerProcess } from '../support/server-process.ts'
import { runAdmin } from './run-admin.ts'

let server: ServerProcess

beforeAll(async () => {
  server = await createServerProcess()
  await server.start()
})
afterAll(() => server.remove())

function admin(...args: string[]) {
  return runAdmin({ GODWIT_DATA_DIR: server.dataDir, GODWIT_PUBLIC_URL: server.baseUrl }, args)
}

async function readPostmasterPid(): Promise<number | undefined> {
  const file = join(server.dataDir, 'postgres', 'cluster', 'postmaster.pid')
  return existsSync(file) ? Number((await readFile(file, 'utf8')).split('\n', 1)[0]) : undefined
}

async function countUsers(): Promise<number> {
  const { code, stdout } = await admin('list', 'users')
  expect(code).toBe(0)
  return stdout.trim().split('\n').length - 1
}

describe('a command on the embedded database', () => {
  it('works beside the running server and leaves its database alone', async () => {
    const pid = await readPostmasterPid()
    const { code, stdout } = await admin('create-api-key', 'admin@godwit.local')
    expect(code).toBe(0)
    const headers = { authorization: `Bearer ${stdout.trim()}` }
    expect((await fetch(`${server.baseUrl}/api/v1/users/me`, { headers })).status).toBe(200)
    expect(await readPostmasterPid()).toBe(pid)
    const results = await Promise.all([1, 2, 3].map((n) => admin('create-user', '--email', `p${n}@example.com`)))
    expect(results.map((result) => result.code)).toEqual([0, 0, 0])
    expect(await countUsers()).toBe(4)
    expect((await fetch(`${server.baseUrl}/readyz`)).status).toBe(200)
  })

  it('waits for a server that is just starting', async () => {
    server.signal('SIGTERM')
    await server.exited()
    const starting = server.start()
    const result = await admin('list', 'users')
    await starting
    expect(result).toMatchObject({ code: 0, stderr: '' })
    expect((await fetch(`${server.baseUrl}/readyz`)).status).toBe(200)
  })

  it('starts the database when no server runs, and stops it again', async () => {
    server.signal('SIGTERM')
    await server.exited()
    expect(await readPostmasterPid()).toBeUndefined()
    expect((await admin('create-user', '--email', 'late@example.com')).code).toBe(0)
    expect(await readPostmasterPid()).toBeUndefined()
    expect(await countUsers()).toBe(5)
    await server.start()
    const { code } = await admin('create-user', '--email', 'late@example.com')
    expect(code).toBe(1)
  })

  it('works on the database that a killed server has left running, and stops it', async () => {
    await server.kill()
    expect(await readPostmasterPid()).toBeDefined()
    expect(await countUsers()).toBe(5)
    expect(await readPostmasterPid()).toBeUndefined()
  })
})
