import { isLoopback } from '../is-loopback.ts'

/** A code has to be exchanged within this time (seconds are what the client needs; a person does not see it). */
export const codeLifetimeMs = 60_000

/** Somebody who does not use the command line client for this long signs in again. */
export const sessionLifetimeMs = 90 * 24 * 3600_000

/**
 * A refresh token that has been exchanged keeps working for this long. Processes of the client that run side by side
 * share one, and a build, during which a process asks for nothing, takes up to an hour.
 */
export const reuseGraceMs = 3600_000

/**
 * Where the browser brings the code, as the client asked for it: plain HTTP to this very machine (RFC 8252, 7.3).
 * undefined for anything else: the code must not reach another.
 */
export function readLoopbackTarget(value: string | undefined): URL | undefined {
  const url = value === undefined || value.length > 2000 ? null : URL.parse(value)
  if (url === null || url.protocol !== 'http:' || !isLoopback(url.hostname)) return undefined
  if (url.port === '' || url.username !== '' || url.password !== '' || url.hash !== '') return undefined
  return url
}

/** The target with the outcome in its query. */
export function addOutcome(target: URL, outcome: { code: string } | { error: string }): string {
  const url = new URL(target)
  for (const [name, value] of Object.entries(outcome)) url.searchParams.set(name, value)
  return url.href
}

/** What becomes of a refresh token that was found: a new one, or the end of its session because it was stolen or copied. */
export function judgeRefresh(token: { usedAt: Date | null }, now: Date): 'rotate' | 'reused' {
  if (token.usedAt === null) return 'rotate'
  return now.getTime() - token.usedAt.getTime() <= reuseGraceMs ? 'rotate' : 'reused'
}
