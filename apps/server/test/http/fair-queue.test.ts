import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createClientAddresses } from '../../src/http/client-addresses.ts'
import { createFairQueue } from '../../src/http/fair-queue.ts'
import { createHttpServer } from '../../src/http/http-server.ts'

const closings: (() => void)[] = []
afterEach(() => {
  for (const close of closings.splice(0)) close()
})

const workMs = 2

/** Each request takes the processor for a while; `served` has their paths in the order in which they were done. */
async function start(options: { trustedProxies?: string[]; maxWaiting?: number } = {}) {
  const { trustedProxies = [], ...bounds } = options
  const queue = createFairQueue({ findAddress: createClientAddresses(trustedProxies).find, ...bounds })
  const served: string[] = []
  const { server } = createHttpServer(
    queue.before((request, response) => {
      for (const endMs = performance.now() + workMs; performance.now() < endMs; );
      served.push(request.url ?? '')
      response.end(request.url)
    }),
  )
  server.listen(0)
  await once(server, 'listening')
  closings.push(() => void server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  const ask = async (localAddress: string, path: string, headers: Record<string, string> = {}) => {
    const asking = get({ port, host: '127.0.0.1', localAddress, path, headers, agent: false })
    const [response] = (await once(asking, 'response')) as [IncomingMessage]
    response.resume()
    return response.statusCode
  }
  /** Many requests in one piece. */
  const flood = async (localAddress: string, count: number, header = 'X: y') => {
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    closings.push(() => socket.destroy())
    let received = ''
    socket.on('data', (data) => {
      received += data
    })
    await once(socket, 'connect')
    const requests = Array.from(
      { length: count },
      (_, index) => `GET /flood/${index} HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\n`,
    )
    // While only one asks, there is nobody to wait for.
    await ask('127.0.0.4', '/another')
    socket.write(requests.join(''))
    await expect.poll(() => queue.measure().queued, { interval: 1, timeout: 10_000 }).toBeGreaterThan(0)
    return { socket, received: () => received }
  }
  return { queue, served, flood, ask }
}

const countFlood = (paths: string[]) => paths.filter((path) => path.startsWith('/flood')).length
const floodPaths = Array.from({ length: 200 }, (_, index) => `/flood/${index}`)
const fewBefore = 50

describe('the queue of requests', () => {
  it('serves one of another address before the rest of a flood, and the flood in its order', async () => {
    const { queue, served, flood, ask } = await start()
    const flooding = await flood('127.0.0.2', floodPaths.length)
    expect(await ask('127.0.0.3', '/other')).toBe(200)
    expect(served.indexOf('/other')).toBeLessThan(fewBefore)
    await expect.poll(() => queue.measure()).toMatchObject({ waiting: 0, shed: 0 })
    expect(served.filter((path) => path.startsWith('/flood'))).toEqual(floodPaths)
    await expect.poll(() => flooding.received()).toContain('/flood/199')
  })

  it('has addresses behind a trusted proxy each wait for themselves, and believes nobody else', async () => {
    const countServedBefore = async (trustedProxies: string[]) => {
      const { served, flood, ask } = await start({ trustedProxies })
      await flood('127.0.0.2', floodPaths.length, 'X-Forwarded-For: 192.0.2.1')
      await ask('127.0.0.2', '/other', { 'x-forwarded-for': '192.0.2.2' })
      return served.indexOf('/other')
    }
    expect(await countServedBefore(['127.0.0.2'])).toBeLessThan(fewBefore)
    expect(await countServedBefore(['127.0.0.9'])).toBeGreaterThanOrEqual(floodPaths.length)
  })

  it('does nothing for who has gone', async () => {
    const { queue, served, flood, ask } = await start()
    const { socket } = await flood('127.0.0.2', floodPaths.length)
    socket.destroy()
    await expect.poll(() => queue.measure().waiting).toBe(0)
    expect(await ask('127.0.0.3', '/other')).toBe(200)
    expect(countFlood(served)).toBeLessThan(floodPaths.length)
  })

  it('has nobody wait while only one address asks', async () => {
    const { queue, ask } = await start()
    await Promise.all(floodPaths.map((path) => ask('127.0.0.2', path)))
    expect(queue.measure().queued).toBe(0)
  })

  it('refuses what is too much of one address, and says when to ask again', async () => {
    const { queue, flood, ask } = await start({ maxWaiting: 40 })
    const { socket, received } = await flood('127.0.0.2', 100)
    const others = Array.from({ length: 15 }, () => ask('127.0.0.3', '/other'))
    await once(socket, 'close')
    const statuses = [...received().matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
    expect(statuses).toEqual([...Array.from({ length: 28 }, () => '200'), '503'])
    expect(received()).toMatch(/^Retry-After: 1\r$/m)
    expect(received()).toMatch(/^Connection: close\r$/m)
    expect(JSON.parse(received().slice(received().lastIndexOf('\r\n\r\n')))).toMatchObject({ code: 'unavailable' })
    expect(new Set(await Promise.all(others))).toEqual(new Set([200]))
    expect(queue.measure()).toMatchObject({ waiting: 0, shed: 72 })
  })
})
