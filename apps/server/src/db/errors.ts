import pg from 'pg'

const uniqueViolation = '23505'
const foreignKeyViolation = '23503'

export function violatesUnique(error: unknown, constraint: string): boolean {
  return error instanceof pg.DatabaseError && error.code === uniqueViolation && error.constraint === constraint
}

/** What the statement refers to was deleted at the same time. */
export function violatesForeignKey(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === foreignKeyViolation
}

/** What was sent is at fault: a value that its type does not take (22), or that breaks a constraint (23). */
export function isDataRefused(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^2[23]/.test(error.code ?? '')
}

/** It is known that the database cannot answer, so that nothing was asked of it. */
export class DatabaseUnavailableError extends Error {}

const networkFaults = new Set<unknown>([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
])

/**
 * The server ended or refused the connection itself (FATAL), gave up on the statement (57: cancelled, 53: out of
 * resources, 40: deadlock or serialization), is a standby (25006), or there is no server.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseUnavailableError) return true
  if (error instanceof pg.DatabaseError) {
    return error.severity === 'FATAL' || error.severity === 'PANIC' || /^(40|53|57|25006)/.test(error.code ?? '')
  }
  if (!(error instanceof Error)) return false
  if ('syscall' in error && error.syscall !== 'open' && 'code' in error && networkFaults.has(error.code)) return true
  // pg has neither a class nor a code for these.
  return /Connection terminated|timeout exceeded when trying to connect|Query read timeout|not queryable/.test(
    error.message,
  )
}

/**
 * What waiting does not mend: a wrong password (28), no such database (3D000), a pooler that refuses our time limits (08P01),
 * no TLS, a certificate that is not trusted.
 */
export function isRefusedForGood(error: unknown): boolean {
  if (error instanceof pg.DatabaseError && /^(28|3D000|08P01)/.test(error.code ?? '')) return true
  return !isDatabaseUnavailable(error)
}
