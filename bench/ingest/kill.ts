import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import type { PatchCheckRequest } from '@godwit/contract'
import pg from 'pg'
import { startGodwit } from '../check/servers.ts'
import { listClients } from './list-clients.ts'

const connections = 20
const loadMs = 1500

export type Loss = { answered: number; lost: number; lostMs: number }

type Answered = { clientId: string; at: number }

/** Kills the service under load, starts it again, and looks for every check that was answered. */
export async function measureLoss(options: {
  check: PatchCheckRequest
  dataDir: string
  databaseUrl: string
  /** Takes the database away while the load is on, and returns how to give it back. */
  disturb: (client: pg.Client) => Promise<() => Promise<void>>
}): Promise<Loss> {
  const { check, dataDir, databaseUrl, disturb } = options
  const client = new pg.Client({ connectionString: databaseUrl })
  client.on('error', () => undefined)
  await client.connect()
  const environment = { DATABASE_URL: databaseUrl, GODWIT_LOG_LEVEL: 'error' }
  const server = await startGodwit(dataDir, environment)
  const answered: Answered[] = []
  const lanes = Promise.all(Array.from({ length: connections }, () => converse(server.port, check, answered)))
  await waitMs(loadMs / 2)
  const restore = await disturb(client)
  await waitMs(loadMs / 2)
  process.kill(server.pid, 'SIGKILL')
  const killedAt = performance.now()
  await lanes
  await restore()

  const next = await startGodwit(dataDir, environment)
  // A stop brings to the database what the start has found.
  await next.stop()
  const known = await listClients(client)
  await client.end()
  const lost = answered.filter(({ clientId }) => !known.has(clientId))
  const lostMs = lost.length === 0 ? 0 : killedAt - Math.min(...lost.map(({ at }) => at))
  return { answered: answered.length, lost: lost.length, lostMs }
}

/** Sends checks of ever new devices on one connection, until it breaks. */
async function converse(port: number, check: PatchCheckRequest, answered: Answered[]): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let clientId = ''
  const send = () => {
    clientId = randomUUID()
    const body = JSON.stringify({ ...check, client_id: clientId })
    socket.write(`POST /api/v1/patches/check HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  }
  socket.on('connect', send)
  socket.on('data', (chunk) => {
    // An answer comes in one piece: it is smaller than a packet of the loopback.
    if (!chunk.toString('latin1', 0, 13).startsWith('HTTP/1.1 200')) throw new Error(`not a 200: ${chunk}`)
    answered.push({ clientId, at: performance.now() })
    send()
  })
  socket.on('error', () => undefined)
  await new Promise((resolve) => socket.on('close', resolve))
}

function waitMs(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs))
}
