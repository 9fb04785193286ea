import { Agent, request } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readSamples } from '../service/read-metrics.ts'
import { createServerProcess, type ServerProcess } from '../support/server-process.ts'
import { createTestDatabase } from '../support/test-database.ts'

const drainMs = 3000

let database: Awaited<ReturnType<typeof createTestDatabase>>
let server: ServerProcess
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

beforeAll(async () => {
  database = await createTestDatabase()
  server = await createServerProcess({
    DATABASE_URL: database.connectionString,
    GODWIT_DRAIN_SECONDS: String(drainMs / 1000),
  })
  await server.start()
})
afterAll(async () => {
  agent.destroy()
  await server.remove()
  await database.drop()
})

/** On a connection that is kept while the server keeps it. */
function ask(
  method: string,
  path: string,
  body = '',
): Promise<{ status?: number; connection?: string; reused: boolean }> {
  return new Promise((resolve, reject) => {
    const asking = request(server.baseUrl + path, { method, agent, headers: { 'content-length': body.length } })
    asking.on('error', reject)
    asking.on('response', (response) => {
      response.resume()
      const { statusCode: status, headers } = response
      const connection = headers.connection
      response.on('end', () =>
        resolve({
          ...(status === undefined ? {} : { status }),
          ...(connection === undefined ? {} : { connection }),
          reused: asking.reusedSocket,
        }),
      )
    })
    asking.end(body)
  })
}

const check = JSON.stringify({
  app_id: 'x',
  platform: 'android',
  arch: 'aarch64',
  release_version: '1',
  channel: 'stable',
})
const askForPatch = () => ask('POST', '/api/v1/patches/check', check)

it('a server tells how many connections it has and may have', async () => {
  const samples = await readSamples(server.baseUrl)
  expect(samples).toMatchObject({ 'godwit_connections{state="busy"}': 1, godwit_connections_refused_total: 0 })
  expect(samples.godwit_connections_max).toBeGreaterThan(0)
})

it('a server that is told to stop fails /readyz, answers until a load balancer has noticed, and then exits with 0', async () => {
  expect(await ask('GET', '/readyz')).toMatchObject({ status: 200, connection: 'keep-alive' })
  expect(await askForPatch()).toMatchObject({ status: 200, connection: 'keep-alive', reused: true })
  const toldAtMs = performance.now()
  server.signal('SIGTERM')
  await expect.poll(async () => (await ask('GET', '/readyz')).status, { interval: 10 }).toBe(503)
  // New connections are taken, and none is kept.
  expect(await askForPatch()).toEqual({ status: 200, connection: 'close', reused: false })
  expect(await ask('GET', '/api/v1/users/me')).toEqual({ status: 401, connection: 'close', reused: false })
  expect(await server.exited()).toBe(0)
  expect(performance.now() - toldAtMs).toBeGreaterThanOrEqual(drainMs)
})
