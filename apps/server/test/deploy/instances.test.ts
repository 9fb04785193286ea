import { randomUUID } from 'node:crypto'
import { createClient } from '@godwit/sdk'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createTestDatabase } from '../support/test-database.ts'
import { createInstallation, type Installation, type Service } from './installation.ts'
import { readComposeFile } from './read-compose-file.ts'
import { readDockerfile } from './read-dockerfile.ts'
import { hasCaddy, type ReverseProxy, runProxy } from './run-proxy.ts'

const adminKey = `sb_api_${'deploy-'.repeat(6)}`
const variables = { GODWIT_DOMAIN: 'localhost', POSTGRES_PASSWORD: 'p', S3_ACCESS_KEY: 'a', S3_SECRET_KEY: 's' }
const { find } = readComposeFile('compose.instances.yaml', variables)
const { image } = readDockerfile()

let installation: Installation
let database: Awaited<ReturnType<typeof createTestDatabase>>
const instances: Service[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  installation = await createInstallation()
  for (const name of ['godwit-1', 'godwit-2']) {
    const { command, environment } = find(name)
    // The hosts that the file names are not here. PostgreSQL is a real one; no byte is stored, so that a folder will do.
    const settings = {
      ...environment,
      DATABASE_URL: database.connectionString,
      GODWIT_BLOBS: 'disk',
      GODWIT_TRUSTED_PROXIES: '127.0.0.0/8',
      GODWIT_ADMIN_API_KEY: adminKey,
    }
    const instance = await installation.createService([...image.entrypoint, ...command], settings, name)
    instances.push(instance)
    await instance.start()
  }
})
afterAll(async () => {
  await installation.remove()
  await database.drop()
})

describe('compose.instances.yaml', () => {
  it('connects the instances to its own PostgreSQL and S3 store', () => {
    const { environment } = find('godwit-1')
    const postgres = find('postgres').environment
    const url = new URL(environment.DATABASE_URL ?? '')
    expect([url.hostname, url.username, url.password, url.pathname]).toEqual([
      'postgres',
      postgres.POSTGRES_USER,
      postgres.POSTGRES_PASSWORD,
      `/${postgres.POSTGRES_DB}`,
    ])
    const s3 = find('s3').environment
    expect([environment.AWS_ACCESS_KEY_ID, environment.AWS_SECRET_ACCESS_KEY]).toEqual([
      s3.ROOT_ACCESS_KEY,
      s3.ROOT_SECRET_KEY,
    ])
  })

  describe.skipIf(!hasCaddy())('behind its Caddy', () => {
    let proxy: ReverseProxy

    beforeAll(async () => {
      const { environment } = find('caddy')
      const upstreams = environment.GODWIT_UPSTREAMS?.replace(/godwit-(\d):8080/g, (_, number) => {
        return `127.0.0.1:${instances[Number(number) - 1]?.port}`
      })
      proxy = await runProxy({ ...environment, GODWIT_UPSTREAMS: upstreams ?? '' })
    })
    afterAll(() => proxy.stop())

    it('serves over TLS, and keeps the figures of the process inside', async () => {
      expect((await proxy.send('/api/v1/users/me', { headers: { authorization: `Bearer ${adminKey}` } })).status).toBe(
        200,
      )
      expect((await proxy.send('/metrics')).status).toBe(404)
    })

    it('fails no request while one instance after the other is replaced', { timeout: 90_000 }, async () => {
      const api = createClient({ baseUrl: instances[0]?.baseUrl ?? '', token: adminKey })
      const { organizations } = await api.listOrganizations()
      const organizationId = organizations[0]?.organization.id ?? 0
      const app = await api.createApp({ body: { display_name: 'Rolled', organization_id: organizationId } })
      const check = {
        app_id: app.id,
        release_version: '1.0.0+1',
        platform: 'android',
        arch: 'aarch64',
        channel: 'stable',
      }
      const statuses = new Map<number, number>()
      const failures: unknown[] = []
      let isOver = false
      const ask = async () => {
        while (!isOver) {
          const body = JSON.stringify({ ...check, client_id: randomUUID() })
          const sent = proxy.send('/api/v1/patches/check', { method: 'POST', body })
          const answer = await sent.catch((error: unknown) => void failures.push(error))
          if (answer) statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
        }
      }
      const asking = Array.from({ length: 8 }, ask)
      for (const instance of instances) {
        expect(await instance.stop(image.stopSignal)).toBe(0)
        await instance.start()
        // Whoever replaces instances waits until the proxy knows of the new one.
        await vi.waitUntil(() => /"path":"\/readyz","status":200/.test(instance.output()), { timeout: 20_000 })
      }
      isOver = true
      await Promise.all(asking)
      expect(failures).toEqual([])
      expect([...statuses.keys()]).toEqual([200])
      expect(statuses.get(200)).toBeGreaterThan(100)
    })
  })
})
