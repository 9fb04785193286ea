/** Milliseconds of Unix time, which has no leap seconds. */
export const hourMs = 3_600_000
export const dayMs = 24 * hourMs

/** The calendar month of a time, UTC; `end` is the start of the next. */
export function monthOf(time: Date): { start: Date; end: Date } {
  const [year, month] = [time.getUTCFullYear(), time.getUTCMonth()]
  return { start: new Date(Date.UTC(year, month)), end: new Date(Date.UTC(year, month + 1)) }
}
