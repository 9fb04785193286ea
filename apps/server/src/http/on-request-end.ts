import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** For requests that ended before anything was answered. No client ever gets it; proxies log the same. */
const clientClosedRequest = 499

/** `isAborted`: the connection was lost before all of the answer was sent. */
export type RequestEnd = { status: number; isAborted: boolean }

/** Calls once for each request, also when its client goes away first: Fastify's `onResponse` is not told of those. */
export function onRequestEnd(
  app: FastifyInstance,
  tell: (request: FastifyRequest, reply: FastifyReply, end: RequestEnd) => void,
): void {
  app.addHook('onRequest', async (request, reply) => {
    const { raw } = reply
    let isTold = false
    const end = (isAborted: boolean) => {
      if (isTold) return
      isTold = true
      tell(request, reply, { status: isAborted && !raw.headersSent ? clientClosedRequest : raw.statusCode, isAborted })
    }
    raw.once('finish', () => end(false))
    raw.once('close', () => end(true))
  })
}
