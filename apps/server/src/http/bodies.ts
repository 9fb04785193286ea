import { Busboy } from '@fastify/busboy'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { AppError } from '../errors.ts'

/** The largest JSON or form body (bytes). */
export const maxBodyBytes = 1024 ** 2

/** The time that a JSON or form body may take to arrive. */
export const bodyTimeoutMs = 30_000

/** A body before its schema has seen it. */
export type RawBody = { kind: 'json'; value: unknown } | { kind: 'form'; value: Record<string, string> }

/**
 * Bodies are read by what the route expects, whatever the content type says: the public client sends JSON as
 * text/plain. Only multipart/form-data means something else.
 */
export function parseAnyContentType(app: FastifyInstance): void {
  tolerateAnyContentType(app)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    '*',
    { parseAs: 'buffer', bodyLimit: maxBodyBytes },
    async (request: FastifyRequest, body: Buffer) => {
      const contentType = request.headers['content-type'] ?? ''
      return isMultipart(contentType) ? await readForm(contentType, body) : readJson(body)
    },
  )
}

/** For routes that read the request themselves, as a stream of any length. */
export function leaveBodiesUnread(app: FastifyInstance): void {
  tolerateAnyContentType(app)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
}

/** Fastify refuses a header that is no media type at all before any parser sees the body. */
function tolerateAnyContentType(app: FastifyInstance): void {
  app.addHook('onRequest', async (request) => {
    const { headers } = request.raw
    if (!isMultipart(headers['content-type'] ?? '')) headers['content-type'] = 'application/octet-stream'
  })
}

/** Ends the wait for a body that trickles: 408, and the connection is closed. */
export function limitBodyTime(app: FastifyInstance, timeoutMs: number): void {
  app.addHook('preParsing', async (_request, reply, payload) => {
    const timer = setTimeout(() => {
      reply.header('connection', 'close')
      payload.emit('error', new AppError('request_timeout'))
    }, timeoutMs)
    const stopWaiting = () => clearTimeout(timer)
    payload.once('end', stopWaiting).once('error', stopWaiting).once('close', stopWaiting)
  })
}

export function isMultipart(contentType: string): boolean {
  return /^multipart\/form-data\s*(;|$)/i.test(contentType)
}

/** The body of a request. Fastify calls no parser for an empty one. */
export function getRawBody(request: FastifyRequest): RawBody {
  return (request.body as RawBody | null | undefined) ?? { kind: 'json', value: undefined }
}

export function readJson(body: Buffer): RawBody {
  if (body.length === 0) return { kind: 'json', value: undefined }
  try {
    return { kind: 'json', value: JSON.parse(body.toString('utf8')) }
  } catch {
    throw new AppError('invalid_request', 'body: is not JSON')
  }
}

/** The text fields of a form. A file part is read past: registering an artifact does not take its bytes. */
async function readForm(contentType: string, body: Buffer): Promise<RawBody> {
  return await new Promise((resolve, reject) => {
    const fields: Record<string, string> = {}
    const refuse = () => reject(new AppError('invalid_request', 'body: is not complete multipart/form-data'))
    try {
      const parser = new Busboy({ headers: { 'content-type': contentType }, limits: { fields: 64 } })
      parser.on('field', (name, value) => {
        fields[name] = value
      })
      parser.on('file', (_name, stream) => stream.resume())
      parser.on('finish', () => resolve({ kind: 'form', value: fields }))
      parser.on('error', refuse)
      parser.end(body)
    } catch {
      refuse()
    }
  })
}
