import { Agent, request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDb, createPool } from '../../src/db/connection.ts'
import { startOutage } from '../support/outage.ts'
import { checkOf, eventOf, readObservations } from './harness.ts'
import { type ServerWithApp, startServerWithApp } from './server-with-app.ts'

let database: ServerWithApp['database']
let server: ServerWithApp['server']
let appId: string
let remove: ServerWithApp['remove']

beforeAll(async () => {
  ;({ database, server, appId, remove } = await startServerWithApp({ GODWIT_LOG_LEVEL: 'error' }))
})
afterAll(() => remove())

const agent = new Agent({ keepAlive: true, maxSockets: 8 })

function post(path: string, body: unknown): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(`${server.baseUrl}/api/v1/patches/${path}`, { method: 'POST', agent }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode))
    })
    sent.once('error', reject).end(JSON.stringify(body))
  })
}

type Answered = { checks: { client: string | null | undefined; at: number }[]; events: string[] }

/** Sends checks and events of ever new devices until the server is gone, and notes what was answered when. */
async function sendUntilGone(answered: Answered): Promise<void> {
  let device = 0
  const sendChecks = async () => {
    for (;;) {
      device += 1
      const check = checkOf(appId, device)
      if ((await post('check', check)) === 200) answered.checks.push({ client: check.client_id, at: performance.now() })
    }
  }
  const sendEvents = async () => {
    for (;;) {
      device += 1
      const event = eventOf(appId, device)
      if ((await post('events', { event })) === 204) answered.events.push(event.client_id)
    }
  }
  await Promise.allSettled([sendChecks(), sendChecks(), sendChecks(), sendEvents(), sendEvents(), sendEvents()])
}

/** The devices that are known, whether what was recorded of them is compacted already or not. */
async function listClients(): Promise<Set<string | null | undefined>> {
  const pool = createPool(database.connectionString)
  const db = createDb(pool)
  const compacted = await db.selectFrom('activity_devices').select('client').execute()
  const segments = await db.selectFrom('activity_segments').select('observations').execute()
  await db.destroy()
  return new Set(
    [...compacted, ...segments.flatMap((row) => readObservations(row.observations))].map((row) => row.client),
  )
}

describe('a process that is killed while the database is away', () => {
  it('has lost no event that it answered, and of checks no more than the last quarter of a second', async () => {
    expect(await post('check', checkOf(appId, 0))).toBe(200)
    const outage = await startOutage(database)
    const answered: Answered = { checks: [], events: [] }
    const sending = sendUntilGone(answered)
    const isEnough = () => answered.checks.length > 500 && answered.events.length > 100
    await expect.poll(isEnough, { timeout: 20_000 }).toBe(true)
    const killedAt = performance.now()
    await server.kill()
    await sending
    await outage.end()
    await server.start()
    // A stop brings to the database what the start has found.
    server.signal('SIGTERM')
    expect(await server.exited()).toBe(0)

    const clients = await listClients()
    const mustBeThere = answered.checks.filter(({ at }) => at < killedAt - 250).map(({ client }) => client)
    expect(mustBeThere.length).toBeGreaterThan(10)
    expect(mustBeThere.filter((client) => !clients.has(client))).toEqual([])
    expect(answered.events.filter((client) => !clients.has(client))).toEqual([])
  })
})
