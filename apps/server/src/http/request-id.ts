import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const acceptable = /^[\w.:/+=-]{1,128}$/

/** The caller's `X-Request-ID` when it can stand in a log line, else a new one. */
export function chooseRequestId(request: Pick<IncomingMessage, 'headers'>): string {
  const sent = request.headers['x-request-id']
  return typeof sent === 'string' && acceptable.test(sent) ? sent : randomUUID()
}
