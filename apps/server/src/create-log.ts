import { type Logger, pino } from 'pino'
import pretty from 'pino-pretty'

/** Lines for a person on a terminal, JSON for everything else. */
export function createLog(level: string, fields: Record<string, unknown> = {}): Logger {
  const log = process.stdout.isTTY
    ? pino({ level, base: undefined }, pretty({ sync: true, ignore: 'pid,hostname' }))
    : pino({ level, base: undefined })
  return log.child(fields)
}
