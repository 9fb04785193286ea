import type { ServerResponse } from 'node:http'
import type { AppError } from '../errors.ts'

/** Where no framework is between us and the response. */
export function sendRefusal(response: ServerResponse, requestId: string, refusal: AppError): void {
  const body = Buffer.from(JSON.stringify(refusal.toResponse(requestId)))
  if (refusal.retryAfterSeconds !== undefined) response.setHeader('Retry-After', refusal.retryAfterSeconds)
  response
    .writeHead(refusal.status, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': body.length,
      'X-Request-ID': requestId,
    })
    .end(body)
}
