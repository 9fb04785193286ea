import type { FastifyRequest } from 'fastify'
import { AppError } from '../errors.ts'

/** The fields of a form by name. One that was not sent is empty. */
export function readForm<Name extends string>(request: FastifyRequest, names: readonly Name[]): Record<Name, string> {
  const body = (request.body ?? {}) as Record<string, unknown>
  return Object.fromEntries(names.map((name) => [name, readField(name, body[name])])) as Record<Name, string>
}

function readField(name: string, value: unknown): string {
  if (value === undefined) return ''
  if (typeof value !== 'string') throw new AppError('invalid_request', `${name}: was sent more than once`)
  // PostgreSQL has no text with it.
  if (value.includes('\0')) throw new AppError('invalid_request', `${name}: has a character that no text has`)
  return value
}

/**
 * What a refused form says to the person, and which field it is about. undefined: the refusal is not about a field. A
 * wrong secret is a try that the log tells of.
 */
export function describeRefusal(request: FastifyRequest, error: unknown): { error: string; field: string } | undefined {
  if (!(error instanceof AppError) || error.code !== 'invalid_request') return undefined
  const [, field, reason] = /^(\w+): (.+)$/s.exec(error.details ?? '') ?? []
  if (field === undefined || reason === undefined) return undefined
  if (field === 'current_password' || field === 'code') {
    request.log.warn({ tried: `a wrong ${field.replaceAll('_', ' ')}`, address: request.ip }, 'refused a form')
  }
  return { field, error: `The ${field.replaceAll('_', ' ')} ${reason}${reason.endsWith('.') ? '' : '.'}` }
}
