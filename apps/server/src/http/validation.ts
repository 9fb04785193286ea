import type { z } from 'zod'
import { AppError } from '../errors.ts'

/** The validated value, or a 400 whose details name each field and why. */
export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown, where = ''): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new AppError('invalid_request', describeIssues(parsed.error, where))
}

export function describeIssues(error: z.ZodError, where = ''): string {
  return error.issues
    .map(
      (issue) =>
        `${[where, ...issue.path.map(String)].filter((part) => part !== '').join('.') || 'body'}: ${issue.message}`,
    )
    .join('; ')
}
