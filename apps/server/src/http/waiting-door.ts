import type { IncomingHttpHeaders, IncomingMessage, RequestListener } from 'node:http'
import { Registry } from 'prom-client'
import { AppError } from '../errors.ts'
import { chooseRequestId } from './request-id.ts'

const json = 'application/json; charset=utf-8'

type Waiting = {
  describeWait: () => string
  /** What `/metrics` can tell already. Throws when the headers have not the right to it. */
  collectFigures: (headers: IncomingHttpHeaders) => Promise<string>
}

type Answer = { status: number; type: string; body: string; retryAfterSeconds?: number | undefined }

/** What answers until the service can: that the process is alive, how it fares, and what it waits for. */
export function createWaitingDoor(waiting: Waiting): RequestListener {
  return async (request, response) => {
    const requestId = chooseRequestId(request)
    // What the request still sends is read past, so that its sender hears the answer.
    request.resume()
    const answer = await chooseAnswer(waiting, request).catch((error: unknown): Answer => {
      const refusal = error instanceof AppError ? error : new AppError('internal')
      const body = JSON.stringify(refusal.toResponse(requestId))
      return { status: refusal.status, type: json, body, retryAfterSeconds: refusal.retryAfterSeconds }
    })
    const { status, type, body, retryAfterSeconds } = answer
    response.shouldKeepAlive = request.headers['content-length'] === undefined
    response
      .writeHead(status, {
        'Content-Type': type,
        'Content-Length': Buffer.byteLength(body),
        'X-Request-ID': requestId,
        ...(retryAfterSeconds === undefined ? {} : { 'Retry-After': retryAfterSeconds }),
      })
      .end(request.method === 'HEAD' ? undefined : body)
  }
}

async function chooseAnswer(waiting: Waiting, { method, url, headers }: IncomingMessage): Promise<Answer> {
  const isRead = method === 'GET' || method === 'HEAD'
  if (isRead && url === '/healthz') return { status: 200, type: json, body: JSON.stringify({ status: 'ok' }) }
  if (isRead && url === '/metrics') {
    return { status: 200, type: Registry.PROMETHEUS_CONTENT_TYPE, body: await waiting.collectFigures(headers) }
  }
  throw new AppError('unavailable', waiting.describeWait(), { retryAfterSeconds: 1 })
}
