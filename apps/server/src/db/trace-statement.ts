import type { LogEvent } from 'kysely'
import { nameFailure, type Tracing } from '../telemetry/tracing.ts'

const maxTextLength = 2000

/** The text has placeholders where the values are. */
export function traceStatement(tracing: Tracing, event: LogEvent): void {
  const { sql } = event.query
  const operation = /^\W*(\w+)/.exec(sql)?.[1]?.toUpperCase() ?? 'SQL'
  const span = tracing.startChild({
    name: `SQL ${operation}`,
    isCall: true,
    durationMs: event.queryDurationMillis,
    attributes: {
      'db.system.name': 'postgresql',
      'db.operation.name': operation,
      'db.query.text': sql.slice(0, maxTextLength),
    },
  })
  span?.end(event.level === 'error' ? { failure: nameFailure(event.error) } : {})
}
