import type { z } from 'zod'
import { AppError } from '../errors.ts'

/** The validated value, or a 400 whose details name each field and why. */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new AppError('invalid_request', describeIssues(parsed.error))
}

function describeIssues(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => `${path.map(String).join('.') || 'body'}: ${message}`).join('; ')
}
