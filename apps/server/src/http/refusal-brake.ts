import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'

/** Whoever is over a limit, and whoever has no good credential. */
const braked = new Set([401, 429])
/** Refusals that leave at once: so many together, */
const maxTogether = 20
/** and then one in so much time. */
const everyMs = 20
/** How long the others are kept: no two for as long, or they would ask again together. */
const delayMs = { least: 500, most: 1500 }
/** How many at a time: their connections are held open for it. */
const maxDelayed = 1000

/** Calls `send` at once or later. */
export type RefusalBrake = (response: ServerResponse, send: () => void) => void

/**
 * Whoever asks again as soon as it was refused hears the next refusals late, so that they cannot be made a flood of their
 * own. Callers that wait as they are told never notice.
 */
export function createRefusalBrake(): RefusalBrake {
  let free = maxTogether
  let countedAtMs = performance.now()
  let delayed = 0
  return (response, send) => {
    const nowMs = performance.now()
    free = Math.min(maxTogether, free + (nowMs - countedAtMs) / everyMs)
    countedAtMs = nowMs
    if (free >= 1) {
      free -= 1
      send()
    } else if (delayed < maxDelayed) {
      delayed += 1
      const release = () => {
        delayed -= 1
        send()
      }
      setTimeout(release, delayMs.least + Math.random() * (delayMs.most - delayMs.least))
    } else {
      // To ask again takes a new connection.
      response.shouldKeepAlive = false
      send()
    }
  }
}

export function brakeRefusals(app: FastifyInstance, brake: RefusalBrake): void {
  app.addHook('onSend', async (_request, reply) => {
    if (braked.has(reply.statusCode)) await new Promise<void>((resolve) => brake(reply.raw, resolve))
  })
}
