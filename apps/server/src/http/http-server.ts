import { createServer, type RequestListener, type Server } from 'node:http'

/** A request header must be complete within this time. */
const headersTimeoutMs = 15_000
/** Of thousands that are late, few at a time are closed, 50 µs each: looking through 10,000 takes 2 ms. */
const connectionsCheckingInterval = 200
/** A connection on which nothing moves is closed after this time, in the middle of a request or between two. */
const idleTimeoutMs = 60_000
const keepAliveTimeoutMs = 65_000

/** A server that listens before it is known what answers. */
export type HttpServer = { server: Server; dispatchTo: (listener: RequestListener) => void }

export function createHttpServer(first: RequestListener): HttpServer {
  let dispatch = first
  const server = createServer(
    {
      headersTimeout: headersTimeoutMs,
      connectionsCheckingInterval,
      // An upload may take hours as long as it moves; JSON bodies have a deadline of their own.
      requestTimeout: 0,
      keepAliveTimeout: keepAliveTimeoutMs,
      noDelay: true,
    },
    (request, response) => dispatch(request, response),
  )
  server.setTimeout(idleTimeoutMs)
  return {
    server,
    dispatchTo: (listener) => {
      dispatch = listener
    },
  }
}
