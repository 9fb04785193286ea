import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const acceptable = /^[\w.:/+=-]{1,128}$/

/** The caller's `X-Request-ID` when it can stand in a log line, else a new one. */
export function chooseRequestId(request: Pick<IncomingMessage, 'headers'>): string {
  const sent = request.headers['x-request-id']
  return typeof sent === 'string' && acceptable.test(sent) ? sent : nextRequestId()
}

const firstNumber = 100_000_000
const lastNumber = 999_999_999
let prefix = ''
let number = lastNumber

/**
 * In the form of a UUID, but only its beginning is random, once; the last nine digits count. A random one for each
 * request would cost 0.5 µs and 500 bytes, of the 19 µs that the device door takes.
 */
function nextRequestId(): string {
  if (number === lastNumber) {
    prefix = randomUUID().slice(0, -String(lastNumber).length)
    number = firstNumber
  }
  number += 1
  return prefix + number
}
