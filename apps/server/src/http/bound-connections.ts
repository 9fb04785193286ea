import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import type { ClientAddresses } from './client-addresses.ts'

/** From here on the connections that have been idle for longest make room for new ones. */
const nearlyFull = 0.9
/** What one address may have of them all. The devices of a whole operator may come from one. */
const shareOfAnAddress = 0.75
/** How many of the idle ones are looked at for one of the same address: a flood must not make each search long. */
const maxLookedAt = 100
const logEveryMs = 10_000

export type Connections = {
  measure: () => { open: number; idle: number; max: number; refused: number; closedIdle: number }
}

type Connection = { address: string; requests: number }

/**
 * Bounds what connections can take in memory and file descriptors. Idle ones are closed before any is refused: their
 * clients lose nothing. A trusted proxy has as many as it likes, since everybody may stand behind it.
 */
export function boundConnections(
  server: Server,
  options: { maxConnections: number; isTrustedProxy: ClientAddresses['isTrustedProxy']; log: Logger },
): Connections {
  const { maxConnections, isTrustedProxy, log } = options
  const maxPerAddress = Math.floor(maxConnections * shareOfAnAddress)
  const connections = new Map<Socket, Connection>()
  const addresses = new Map<string, number>()
  /** Between requests, or before the first one; idle for longest first. */
  const idle = new Set<Socket>()
  let refused = 0
  let closedIdle = 0
  let loggedAtMs = Number.NEGATIVE_INFINITY

  const tellRefusal = (reason: object) => {
    refused += 1
    const nowMs = performance.now()
    if (nowMs - loggedAtMs < logEveryMs) return
    loggedAtMs = nowMs
    log.warn({ ...reason, open: connections.size, maxConnections, refused }, 'too many connections: refusing new ones')
  }
  const closeIdleOne = (isFitting: (socket: Socket) => boolean): boolean => {
    let lookedAt = 0
    for (const socket of idle) {
      if (isFitting(socket)) {
        closedIdle += 1
        forget(socket)
        socket.destroy()
        return true
      }
      lookedAt += 1
      if (lookedAt === maxLookedAt) return false
    }
    return false
  }
  const forget = (socket: Socket) => {
    const connection = connections.get(socket)
    if (connection === undefined) return
    connections.delete(socket)
    idle.delete(socket)
    const left = (addresses.get(connection.address) ?? 1) - 1
    if (left === 0) addresses.delete(connection.address)
    else addresses.set(connection.address, left)
  }
  const hasRoom = (address: string): boolean => {
    if (connections.size >= maxConnections * nearlyFull) closeIdleOne(() => true)
    if ((addresses.get(address) ?? 0) < maxPerAddress || isTrustedProxy(address)) return true
    return closeIdleOne((socket) => connections.get(socket)?.address === address)
  }
  server.maxConnections = maxConnections
  server.on('drop', (dropped) => tellRefusal({ address: dropped?.remoteAddress }))
  // Before the HTTP server's own listener sets up what a connection needs.
  server.prependListener('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? ''
    if (!hasRoom(address)) {
      tellRefusal({ address })
      socket.destroy()
      return
    }
    connections.set(socket, { address, requests: 0 })
    addresses.set(address, (addresses.get(address) ?? 0) + 1)
    idle.add(socket)
    socket.once('close', () => forget(socket))
  })
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const connection = connections.get(socket)
    if (connection === undefined) return
    connection.requests += 1
    idle.delete(socket)
    response.once('close', () => {
      connection.requests -= 1
      if (connection.requests === 0 && connections.has(socket)) idle.add(socket)
    })
  })
  return {
    measure: () => ({ open: connections.size, idle: idle.size, max: maxConnections, refused, closedIdle }),
  }
}
