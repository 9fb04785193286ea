import { type ErrorCode, type ErrorResponse, errorTable } from '@godwit/contract'

/** A refusal that the caller is told of. The contract's table decides the HTTP status. */
export class AppError extends Error {
  readonly code: ErrorCode
  readonly details: string | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(code: ErrorCode, details?: string, options: { retryAfterSeconds?: number } = {}) {
    super(errorTable[code].title)
    this.name = 'AppError'
    this.code = code
    this.details = details
    this.retryAfterSeconds = options.retryAfterSeconds
  }

  get status(): number {
    return errorTable[this.code].status
  }

  toResponse(): ErrorResponse {
    return { code: this.code, message: this.message, ...(this.details === undefined ? {} : { details: this.details }) }
  }
}
