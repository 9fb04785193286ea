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

/**
 * The server ended or refused the connection itself (FATAL), gave up on the statement (57: cancelled, 53: out of
 * resources, 40: deadlock or serialization), or there is no server.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) {
    return error.severity === 'FATAL' || error.severity === 'PANIC' || /^(40|53|57)/.test(error.code ?? '')
  }
  if (!(error instanceof Error)) return false
  const code = 'code' in error ? error.code : undefined
  if (code === 'ECONNREFUSED' || code === 'ECONNRESET' || code === 'EPIPE' || code === 'ENOTFOUND') return true
  // pg has neither a class nor a code for these.
  return /Connection terminated|timeout exceeded when trying to connect|Query read timeout|not queryable/.test(
    error.message,
  )
}
