import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** Stands between two processes, and can do what a network does. */
export type TcpProxy = {
  port: number
  /** Connections go to this port from now on. */
  aim: (targetPort: number) => void
  /** Breaks every connection, and refuses new ones: the machine is there, nobody listens. */
  refuse: () => Promise<void>
  /** Nothing arrives any more, in either direction, on any connection, and nobody is told. New ones are taken. */
  blackHole: () => void
  /** Every piece arrives so much later. */
  delay: (delayMs: number) => void
  /** Breaks the connections whose first bytes match, once. */
  cut: (matches?: (opening: string) => boolean) => number
  /** On the connections whose first bytes match, nothing arrives any more, and nobody is told. */
  mute: (matches: (opening: string) => boolean) => number
  /** All as it should be. What was held back is lost, with its connections: as after a reboot of a router. */
  heal: () => Promise<void>
  close: () => Promise<void>
}

type Pair = { client: Socket; target: Socket; sent: string; isMute: boolean }

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  let target = targetPort
  let delayMs = 0
  let isBlackHole = false
  const pairs = new Set<Pair>()
  let server: Server | undefined

  const destroy = (pair: Pair) => {
    pairs.delete(pair)
    pair.client.destroy()
    pair.target.destroy()
  }
  const forward = (pair: Pair, from: Socket, to: Socket) => {
    from.on('data', async (chunk: Buffer) => {
      if (from === pair.client && pair.sent.length < 4096) pair.sent += chunk.toString('latin1')
      if (isBlackHole || pair.isMute) return
      if (delayMs > 0) await sleep(delayMs)
      if (!isBlackHole && !to.destroyed) to.write(chunk)
    })
    from.on('error', () => undefined)
    from.on('close', () => {
      if (!isBlackHole) destroy(pair)
    })
  }
  const accept = (client: Socket) => {
    const pair: Pair = {
      client,
      target: connect({ port: target, host: '127.0.0.1', noDelay: true }),
      sent: '',
      isMute: false,
    }
    pairs.add(pair)
    client.setNoDelay(true)
    forward(pair, client, pair.target)
    forward(pair, pair.target, client)
  }
  const listen = (port: number) =>
    new Promise<number>((resolve, reject) => {
      server = createServer(accept)
      server.once('error', reject)
      server.listen(port, '127.0.0.1', () => {
        const address = server?.address()
        resolve(typeof address === 'object' && address !== null ? address.port : port)
      })
    })
  const cut = (matches: (opening: string) => boolean = () => true) => {
    const found = [...pairs].filter(({ sent }) => matches(sent))
    for (const pair of found) destroy(pair)
    return found.length
  }
  const shut = () =>
    new Promise<void>((resolve) => {
      const closing = server
      server = undefined
      if (closing === undefined) return resolve()
      closing.close(() => resolve())
      cut()
    })
  const port = await listen(0)
  return {
    port,
    aim: (next) => {
      target = next
    },
    refuse: shut,
    blackHole: () => {
      isBlackHole = true
    },
    delay: (ms) => {
      delayMs = ms
    },
    cut,
    mute: (matches) => {
      const found = [...pairs].filter(({ sent, isMute }) => !isMute && matches(sent))
      for (const pair of found) pair.isMute = true
      return found.length
    },
    heal: async () => {
      delayMs = 0
      if (isBlackHole) cut()
      isBlackHole = false
      if (server === undefined) await listen(port)
    },
    close: shut,
  }
}
