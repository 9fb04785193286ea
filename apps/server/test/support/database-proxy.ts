import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** `pass`, `refuse` what is new and reset what is there, or `swallow`: take everything and answer nothing. */
export type ProxyMode = 'pass' | 'refuse' | 'swallow'

/** A network in front of a database that can be broken. */
export type DatabaseProxy = {
  connectionString: string
  setMode: (mode: ProxyMode) => void
  stop: () => Promise<void>
}

export async function startDatabaseProxy(connectionString: string, first: ProxyMode = 'pass'): Promise<DatabaseProxy> {
  const target = new URL(connectionString)
  const sockets = new Set<Socket>()
  let mode = first

  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
  }
  const server = createServer((client) => {
    keep(client)
    if (mode === 'refuse') {
      client.resetAndDestroy()
      return
    }
    const database = connect(Number(target.port), target.hostname)
    keep(database)
    // What is swallowed is lost, as on a network: passing goes on with new connections only.
    let isLost = mode === 'swallow'
    const forward = (to: Socket) => (bytes: Buffer) => {
      isLost ||= mode === 'swallow'
      if (!isLost) to.write(bytes)
    }
    client.on('data', forward(database)).on('close', () => database.destroy())
    database.on('data', forward(client)).on('close', () => isLost || client.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(connectionString)
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const dropAll = () => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  return {
    connectionString: url.href,
    setMode: (next) => {
      mode = next
      if (next === 'refuse') dropAll()
    },
    stop: async () => {
      dropAll()
      server.close()
      await once(server, 'close')
    },
  }
}
