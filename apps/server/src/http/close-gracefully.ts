import { Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

/** How long clients with a kept connection have to send a request that tells them, in its answer, to close it. */
const farewellMs = 1000
/** How often connections are looked for whose last request has just been answered. */
const idleCheckMs = 50

/**
 * Stops listening, lets every request that runs finish, and then closes. Node's own way closes idle connections at once,
 * which resets the busy clients that are about to send on them.
 */
export async function closeGracefully(http: FastifyInstance): Promise<void> {
  const { server } = http
  const allGone = new Promise((resolve) => Server.prototype.close.call(server, resolve))
  await Promise.race([allGone, sleep(farewellMs, undefined, { ref: false })])
  const timer = setInterval(() => server.closeIdleConnections(), idleCheckMs)
  await allGone
  clearInterval(timer)
  await http.close()
}
