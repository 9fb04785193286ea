import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Config } from '../config.ts'
import { AppError } from '../errors.ts'
import { hashToken } from '../random-tokens.ts'

/** By hash, so that the time which the comparison takes says nothing, not even of the length. */
export function requireMetricsToken(
  { metricsToken }: Pick<Config, 'metricsToken'>,
  headers: IncomingHttpHeaders,
): void {
  if (metricsToken === undefined) return
  const isRight = timingSafeEqual(hashToken(headers.authorization ?? ''), hashToken(`Bearer ${metricsToken}`))
  if (!isRight) throw new AppError('unauthenticated')
}
