import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'

/** What is read of a body that was refused (bytes), so that a client which sends before it listens hears the answer. */
const maxDrainedBytes = 64 * 1024 ** 2
const maxDrainMs = 30_000

/** Whatever a request still sends after its answer is read past, up to a bound. */
export function drainRequests(app: FastifyInstance): void {
  app.addHook('onSend', async (request, reply) => {
    // Nobody waits any longer for a body that came too slowly.
    if (reply.statusCode === 408) {
      reply.header('connection', 'close')
      return
    }
    // Fastify asks for the connection to be closed when it refuses a body, which would reset it under the answer.
    if (!request.raw.complete) reply.removeHeader('connection')
    drainRequest(request.raw, reply.raw)
  })
}

/**
 * Reads on after the answer, up to a bound. Closing while bytes are unread resets the connection, and a client that sends
 * before it listens would never see the answer; so one that asked for the connection to be closed is closed afterwards.
 */
function drainRequest(raw: IncomingMessage, response: ServerResponse): void {
  if (raw.complete || raw.destroyed) {
    raw.resume()
    return
  }
  let leftBytes = maxDrainedBytes
  raw.on('error', () => undefined)
  raw.on('data', (chunk: Buffer) => {
    leftBytes -= chunk.length
    if (leftBytes < 0) raw.destroy()
  })
  const timer = setTimeout(() => raw.destroy(), maxDrainMs)
  raw.once('close', () => clearTimeout(timer)).once('end', () => clearTimeout(timer))
  raw.resume()
  if (response.shouldKeepAlive) return
  response.shouldKeepAlive = true
  Promise.all([once(raw, 'end'), once(response, 'finish')]).then(
    () => raw.socket.destroySoon(),
    () => undefined,
  )
}
