import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { ErrorCode } from '@godwit/contract'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { BlobsUnavailableError } from '../blobs/blob-store.ts'
import { isDatabaseUnavailable, violatesForeignKey } from '../db/errors.ts'
import { AppError } from '../errors.ts'

/** The one place where an error becomes an answer: ours, the framework's, or unknown (500, told only to the log). */
export function handleErrors(app: FastifyInstance): void {
  app.setErrorHandler(sendError)
  app.setNotFoundHandler((request, reply) => sendError(new AppError('not_found'), request, reply))
}

export function toAppError(error: unknown, request: Pick<FastifyRequest, 'log'>): AppError {
  if (error instanceof AppError) return error
  const status = (error as Partial<FastifyError>).statusCode
  if (status === 413) return new AppError('payload_too_large')
  if (status === 408) return new AppError('request_timeout')
  if (status !== undefined && status >= 400 && status < 500) {
    return new AppError('invalid_request', (error as FastifyError).message)
  }
  if (violatesForeignKey(error)) return new AppError('not_found')
  if (isDatabaseUnavailable(error)) {
    request.log.error({ reason: (error as Error).message }, 'the database cannot answer')
    return new AppError('unavailable', undefined, { retryAfterSeconds: 5 })
  }
  if (error instanceof BlobsUnavailableError) {
    request.log.error({ reason: error.message }, 'the blob store cannot answer')
    return new AppError('unavailable', undefined, { retryAfterSeconds: 5 })
  }
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    request.log.error({ err: error }, 'the disk is full')
    return new AppError('unavailable', undefined, { retryAfterSeconds: 60 })
  }
  // The client went away while it was answered: nobody is there to be told.
  if (code === 'ERR_STREAM_PREMATURE_CLOSE' || code === 'ECONNRESET') {
    request.log.debug({ err: error }, 'the client is gone')
    return new AppError('invalid_request')
  }
  request.log.error({ err: error }, 'request failed')
  return new AppError('internal')
}

export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const refusal = toAppError(error, request)
  if (refusal.retryAfterSeconds !== undefined) reply.header('retry-after', refusal.retryAfterSeconds)
  if (refusal.status === 401) reply.header('www-authenticate', 'Bearer')
  reply.code(refusal.status).type('application/json; charset=utf-8')
  return reply.send(JSON.stringify(refusal.toResponse(request.id)))
}

/** For what is not even HTTP, or too slow or too large in its headers: no request exists that could be answered. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const refusal = new AppError(clientErrorCodes[error.code ?? ''] ?? 'invalid_request')
  const body = JSON.stringify(refusal.toResponse())
  socket.end(
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}

const clientErrorCodes: Record<string, ErrorCode> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_HEADER_OVERFLOW: 'payload_too_large',
}
