import { z } from 'zod'

/** Signed 64-bit integer. Values stay below 2^53, so that every JSON reader keeps them exact. */
export const Int64 = z.int().nonnegative().meta({ format: 'int64' })

export const Timestamp = z.iso.datetime().meta({ description: 'ISO 8601, UTC, always with `Z`.' })

/** A point in time with its zone, so that nobody's local time is guessed. */
export const Instant = z.iso.datetime({
  offset: true,
  error: 'must be a time with its zone, such as 2026-01-31T00:00:00Z; a URL has %2B for +',
})

/** In answers. Not checked again: one address that a pattern does not know must not make a whole list unreadable. */
export const Email = z.string().meta({ format: 'email' })

/** PostgreSQL stores neither NUL nor half a surrogate pair; such text is refused here instead of failing in SQL. */
export function isStorableText(value: string): boolean {
  return !value.includes('\0') && value.isWellFormed()
}

export const text = (limits: { min?: number; max: number }) =>
  z
    .string()
    .min(limits.min ?? 1)
    .max(limits.max)
    .refine(isStorableText, 'must not contain NUL characters or unpaired surrogates')

const maxJsonDepth = 32

/** Why a JSON value cannot be stored, or undefined when it can. Walks with its own stack: 1 MiB of `[` must not overflow ours. */
export function findJsonProblem(value: unknown): string | undefined {
  const stack: { value: unknown; depth: number }[] = [{ value, depth: 0 }]
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    if (item.depth > maxJsonDepth) return `must not be nested deeper than ${maxJsonDepth} levels`
    if (typeof item.value === 'string' && !isStorableText(item.value)) return 'must not contain NUL characters'
    if (typeof item.value !== 'object' || item.value === null) continue
    for (const [key, child] of Object.entries(item.value)) {
      if (!isStorableText(key)) return 'must not contain NUL characters'
      stack.push({ value: child, depth: item.depth + 1 })
    }
  }
  return undefined
}

export const FreeformMetadata = z
  .record(z.string(), z.unknown())
  .superRefine((value, context) => {
    const problem = findJsonProblem(value)
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem })
  })
  .meta({ description: 'Free JSON object written by the client: what built this, with which tools.' })

export const Sha256Hex = z
  .string()
  .regex(/^[0-9a-fA-F]{64}$/, 'must be a SHA-256 in hexadecimal (64 digits)')
  .meta({ description: 'SHA-256 in hexadecimal.' })
