import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, createTestRelease, findChannelId, uploadTestPatchArtifact } from '../support/publishing.ts'
import { createServerProcess, type ServerProcess } from '../support/server-process.ts'

let server: ServerProcess

beforeAll(async () => {
  server = await createServerProcess({ GODWIT_WORKERS: '2' })
  await server.start()
})
afterAll(() => server.remove())

/** The processes that share the port. */
function listServing(): number[] {
  const isServing = (pid: number) => {
    const parent = / \(.*\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
    return Number(parent) === server.pid() && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('server-process.ts')
  }
  return readdirSync('/proc')
    .filter((name) => {
      try {
        return /^\d+$/.test(name) && isServing(Number(name))
      } catch {
        return false
      }
    })
    .map(Number)
}

/** On a connection of its own: the system chooses which process has it. */
function get(path: string): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(server.baseUrl + path, { agent: false }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      response.on('end', () => resolve({ status: response.statusCode, text }))
    })
    sent.on('error', reject).end()
  })
}

async function countApps(): Promise<number[]> {
  const { text } = await get('/metrics')
  return [...text.matchAll(/^godwit_device_index_apps\{process="\d"\} (\d+)$/gm)].map(([, apps]) => Number(apps))
}

describe('two processes on one port', () => {
  it('serve one service: its first account, its figures, and a promote that is live on both', async () => {
    expect(server.output().match(/First account/g)).toHaveLength(1)
    expect(listServing()).toHaveLength(2)
    await expect.poll(countApps, { timeout: 10_000 }).toEqual([0, 0])
    const [organization] = (await server.api.listOrganizations()).organizations
    const owner = { api: server.api, organizationId: organization?.organization.id ?? 0 }
    const appId = await createTestApp(owner)
    await expect.poll(countApps, { timeout: 10_000 }).toEqual([1, 1])
    const releaseId = await createTestRelease(server.api, appId, '1')
    const patch = await server.api.createPatch({ params: { appId }, body: { release_id: releaseId } })
    await uploadTestPatchArtifact(server.api, { appId, patchId: patch.id })
    const body = { patch_id: patch.id, channel_id: await findChannelId(server.api, appId) }
    await server.api.promotePatch({ params: { appId }, body })
    const check = JSON.stringify({
      app_id: appId,
      release_version: '1',
      channel: 'stable',
      platform: 'android',
      arch: 'aarch64',
    })
    const ask = async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, async () => {
          const headers = { connection: 'close' }
          return await (
            await fetch(`${server.baseUrl}/api/v1/patches/check`, { method: 'POST', headers, body: check })
          ).json()
        }),
      )
      return answers.filter((answer) => (answer as { patch_available: boolean }).patch_available).length
    }
    await expect.poll(ask, { timeout: 5000, interval: 10 }).toBe(20)
  })

  it('go on when one is killed, which is replaced', async () => {
    await expect.poll(listServing, { timeout: 10_000 }).toHaveLength(2)
    const [victim = 0, ...others] = listServing()
    process.kill(victim, 'SIGKILL')
    // What was connected to it is reset with it; whoever comes once it is gone is not.
    await expect.poll(() => existsSync(`/proc/${victim}`), { timeout: 10_000 }).toBe(false)
    expect(listServing()).toEqual(expect.arrayContaining(others))
    for (let request = 0; request < 20; request += 1) expect((await get('/healthz')).status).toBe(200)
    await expect.poll(countApps, { timeout: 25_000 }).toEqual([1, 1])
    expect((await server.api.listApps()).apps).toHaveLength(1)
  })

  it('end together on SIGTERM, with 0 and leaving nothing', async () => {
    await expect.poll(listServing, { timeout: 10_000 }).toHaveLength(2)
    const all = listServing()
    server.signal('SIGTERM')
    expect(await server.exited()).toBe(0)
    for (const pid of all) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  })
})
