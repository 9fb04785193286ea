import pg from 'pg'

const uniqueViolation = '23505'

export function violatesUnique(error: unknown, constraint: string): boolean {
  return error instanceof pg.DatabaseError && error.code === uniqueViolation && error.constraint === constraint
}

/** The server ended or refused the connection itself (FATAL: shutdown, too many connections), or there is none. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return error.severity === 'FATAL' || error.severity === 'PANIC'
  if (!(error instanceof Error)) return false
  const code = 'code' in error ? error.code : undefined
  if (code === 'ECONNREFUSED' || code === 'ECONNRESET' || code === 'EPIPE' || code === 'ENOTFOUND') return true
  // pg has neither a class nor a code for these two.
  return /Connection terminated|timeout exceeded when trying to connect/.test(error.message)
}
