import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import type { RequestSource } from './actor.ts'

const maxLength = 512

/** Where a request comes from. What a client says of itself is cut, and loses what cannot be stored. */
export function readSource(request: FastifyRequest): RequestSource {
  const { headers } = request
  return {
    // A proxy that passes on what clients say of themselves may give anything.
    address: isIP(request.ip) === 0 ? undefined : request.ip.replace(/^::ffff:(?=\d+\.)/i, ''),
    userAgent: readHeader(headers['user-agent']),
    correlationId: readHeader(headers['x-request-id']),
  }
}

function readHeader(value: string | string[] | undefined): string | undefined {
  const text = Array.isArray(value) ? value[0] : value
  return text === undefined || text === '' ? undefined : text.replaceAll('\0', '').slice(0, maxLength).toWellFormed()
}
