import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { connect } from 'node:net'
import pino from 'pino'
import { afterEach, describe, expect, it } from 'vitest'
import { boundConnections } from '../../src/http/bound-connections.ts'
import { createClientAddresses } from '../../src/http/client-addresses.ts'
import { createHttpServer } from '../../src/http/http-server.ts'
import { capConnections } from '../../src/http/open-file-limit.ts'

const closings: (() => void)[] = []
afterEach(() => {
  for (const close of closings.splice(0)) close()
})

/** Answers at once, but for `/hold`, which waits for ever. */
async function start(options: { maxConnections: number; trustedProxies?: string[] }) {
  const { server } = createHttpServer((request, response) => {
    if (request.url !== '/hold') response.end('ok')
  })
  const lines: { msg: string; address?: string }[] = []
  const log = pino({ level: 'warn' }, { write: (line) => lines.push(JSON.parse(line)) })
  const { maxConnections, trustedProxies = [] } = options
  const { isTrustedProxy } = createClientAddresses(trustedProxies)
  const connections = boundConnections(server, { maxConnections, isTrustedProxy, log })
  server.listen(0)
  await once(server, 'listening')
  closings.push(() => void server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  return { connections, lines, client: (from = '127.0.0.1') => createClient(port, from) }
}

async function createClient(port: number, from: string) {
  const socket: Socket = connect({ port, host: '127.0.0.1', localAddress: from })
  closings.push(() => socket.destroy())
  let received = ''
  let isClosed = false
  socket.on('data', (data) => {
    received += data
  })
  socket.on('error', () => undefined)
  socket.once('close', () => {
    isClosed = true
  })
  await once(socket, 'connect')
  return {
    ask: async (path = '/') => {
      received = ''
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
      if (path !== '/hold') await expect.poll(() => received).toContain('ok')
    },
    isClosed: () => isClosed,
  }
}

describe('the connections of a server', () => {
  it('close those idle for longest when there are nearly too many, and none that is being answered', async () => {
    const { client, connections } = await start({ maxConnections: 10, trustedProxies: ['127.0.0.0/8'] })
    const busy = await client()
    await busy.ask('/hold')
    const silent = await client()
    const kept = await client()
    await kept.ask()
    for (let more = 0; more < 6; more += 1) await client()
    await expect.poll(() => connections.measure()).toMatchObject({ open: 9, closedIdle: 0 })
    await kept.ask()
    const next = await client()
    await next.ask()
    await expect.poll(() => silent.isClosed()).toBe(true)
    await kept.ask()
    expect([busy.isClosed(), kept.isClosed()]).toEqual([false, false])
    expect(connections.measure()).toMatchObject({ open: 9, closedIdle: 1, refused: 0 })
  })

  it('are refused when all are busy, and told once in a while', async () => {
    const { client, connections, lines } = await start({ maxConnections: 4, trustedProxies: ['127.0.0.1'] })
    for (let busy = 0; busy < 4; busy += 1) await (await client()).ask('/hold')
    await expect.poll(() => connections.measure().idle).toBe(0)
    const late = [await client(), await client()]
    await expect.poll(() => late.map(({ isClosed }) => isClosed())).toEqual([true, true])
    expect(connections.measure()).toMatchObject({ open: 4, refused: 2 })
    expect(lines.map(({ msg }) => msg)).toEqual(['too many connections: refusing new ones'])
  })

  it('of one address are at most three quarters of all, so that others find room', async () => {
    const { client, connections } = await start({ maxConnections: 8 })
    for (let busy = 0; busy < 6; busy += 1) await (await client()).ask('/hold')
    await expect.poll(() => connections.measure().idle).toBe(0)
    const seventh = await client()
    await expect.poll(() => seventh.isClosed()).toBe(true)
    const other = await client('127.0.0.2')
    await other.ask()
    expect(connections.measure()).toMatchObject({ open: 7, refused: 1 })
  })

  it('of one address make room for its own, while idle', async () => {
    const { client, connections } = await start({ maxConnections: 8 })
    const first = await client()
    for (let more = 0; more < 5; more += 1) await client()
    await (await client()).ask()
    await expect.poll(() => first.isClosed()).toBe(true)
    expect(connections.measure()).toMatchObject({ open: 6, refused: 0, closedIdle: 1 })
  })

  it('of a trusted proxy are not bounded by its address', async () => {
    const { client, connections } = await start({ maxConnections: 8, trustedProxies: ['10.0.0.0/8', '127.0.0.1'] })
    for (let busy = 0; busy < 6; busy += 1) await (await client()).ask('/hold')
    await (await client()).ask()
    expect(connections.measure()).toMatchObject({ open: 7, refused: 0, closedIdle: 0 })
  })

  it('are no more than there are file descriptors for', () => {
    expect(capConnections(10_000, 4096)).toBe(3584)
    expect(capConnections(10_000, 1_048_576)).toBe(10_000)
    expect(capConnections(10_000, undefined)).toBe(10_000)
  })
})
