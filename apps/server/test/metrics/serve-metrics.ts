import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Client, createClient } from '@godwit/sdk'
import type { ActivityStore } from '../../src/activity/activity-store.ts'
import { buildApp } from '../../src/app.ts'
import type { TestService } from '../support/test-service.ts'
import { createFakeActivityStore } from './fake-activity-store.ts'

/** The service on a port of its own, at a time and with counts that the test says. */
export async function serveMetrics(
  service: TestService,
  options: { now: string; store?: Partial<ActivityStore> },
): Promise<{ baseUrl: string; server: Server; client: (token: string) => Client; stop: () => Promise<void> }> {
  const { http } = await buildApp({
    ...service.deps,
    activityStore: createFakeActivityStore(options.store),
    clock: () => new Date(options.now),
  })
  await http.listen({ port: 0, host: '127.0.0.1' })
  const baseUrl = `http://127.0.0.1:${(http.server.address() as AddressInfo).port}`
  return {
    baseUrl,
    server: http.server,
    client: (token) => createClient({ baseUrl, token }),
    stop: async () => await http.close(),
  }
}
