import type { IncomingMessage } from 'node:http'
import proxyAddr from '@fastify/proxy-addr'

export type ClientAddresses = {
  isTrustedProxy: (address: string) => boolean
  /** Of whoever asks: what a trusted proxy says of it, else the other end of the connection. */
  find: (request: IncomingMessage) => string
}

/** `trustedProxies`: addresses and networks. */
export function createClientAddresses(trustedProxies: string[]): ClientAddresses {
  const trust = proxyAddr.compile(trustedProxies)
  const isTrustedProxy = (address: string) => trust(address, 0)
  return {
    isTrustedProxy,
    find: (request) => {
      const address = request.socket.remoteAddress ?? ''
      return trustedProxies.length > 0 && isTrustedProxy(address) ? proxyAddr(request, trust) : address
    },
  }
}
