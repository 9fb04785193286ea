import { afterEach, describe, expect, it } from 'vitest'
import type { Role } from '../../src/config.ts'
import { createTestApp } from '../support/publishing.ts'
import { createTestService, type TestService } from '../support/test-service.ts'

const services: TestService[] = []
afterEach(async () => {
  for (const service of services.splice(0)) await service.stop()
})

async function start(...roles: Role[]): Promise<TestService> {
  const service = await createTestService({ config: { roles: new Set(roles) } })
  services.push(service)
  return service
}

async function statusOf(service: TestService, path: string, method = 'GET'): Promise<number> {
  const response = await fetch(service.baseUrl + path, { method, ...(method === 'POST' ? { body: '{}' } : {}) })
  await response.arrayBuffer()
  return response.status
}

const check = '/api/v1/patches/check'

describe('an instance with one role', () => {
  it('device answers checks and downloads, and no other door', async () => {
    const service = await start('device')
    expect(await statusOf(service, check, 'POST')).toBe(400)
    expect(await statusOf(service, '/downloads/abcdefgh?signature=x')).toBe(403)
    expect(await statusOf(service, '/readyz')).toBe(200)
    for (const path of ['/api/v1/apps', '/sign-in', '/openapi.json', '/uploads/x', '//api/v1/users/me'])
      expect(await statusOf(service, path)).toBe(404)
  })

  it('control has all doors but that of devices', async () => {
    const service = await start('control')
    const account = await service.createAccount()
    await createTestApp(account)
    expect(await statusOf(service, '/sign-in')).toBe(200)
    expect(await statusOf(service, check, 'POST')).toBe(404)
  })

  it('worker has none', async () => {
    const service = await start('worker')
    expect(await statusOf(service, '/healthz')).toBe(200)
    expect(await statusOf(service, '/metrics')).toBe(200)
    for (const path of ['/api/v1/apps', '/downloads/abcdefgh', '/sign-in'])
      expect(await statusOf(service, path)).toBe(404)
    expect(await statusOf(service, check, 'POST')).toBe(404)
  })
})
