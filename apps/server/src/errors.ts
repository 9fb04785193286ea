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

  /** Of a fault of ours only the request id is told, by which the log has the rest. */
  toResponse(requestId?: string): ErrorResponse {
    const details = this.code === 'internal' && requestId !== undefined ? `request id ${requestId}` : this.details
    return { code: this.code, message: this.message, ...(details === undefined ? {} : { details }) }
  }
}
