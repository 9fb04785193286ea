import type { RequestListener } from 'node:http'
import { AppError } from '../errors.ts'
import { chooseRequestId } from './request-id.ts'

/** What answers until the service can: that the process is alive, and what it waits for. */
export function createWaitingDoor(describeWait: () => string): RequestListener {
  return (request, response) => {
    const requestId = chooseRequestId(request)
    const isAlive = request.url === '/healthz' && (request.method === 'GET' || request.method === 'HEAD')
    const refusal = new AppError('unavailable', describeWait(), { retryAfterSeconds: 1 })
    const body = JSON.stringify(isAlive ? { status: 'ok' } : refusal.toResponse(requestId))
    // What the request still sends is read past, so that its sender hears the answer.
    request.resume()
    response.shouldKeepAlive = request.headers['content-length'] === undefined
    response
      .writeHead(isAlive ? 200 : refusal.status, {
        'Content-Type': 'application/json; charset=utf-8',
        'Content-Length': Buffer.byteLength(body),
        'X-Request-ID': requestId,
        ...(isAlive ? {} : { 'Retry-After': refusal.retryAfterSeconds }),
      })
      .end(request.method === 'HEAD' ? undefined : body)
  }
}
