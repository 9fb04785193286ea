/**
 * The system refused memory to this process, which the caps on it bring about. Running out of JavaScript's own heap ends
 * the process at once instead.
 */
export function isOutOfMemory(error: unknown): boolean {
  return error instanceof RangeError && /allocation failed|failed to allocate/i.test(error.message)
}
