import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { AppError } from '../errors.ts'
import { chooseRequestId } from './request-id.ts'
import { sendRefusal } from './send-refusal.ts'

/** What one address may ask in one turn of the event loop and be answered before others are looked at. */
const maxAtOnce = 8
/** The work of those who wait is done in slices of this length, and in between whoever has just come is served. */
const sliceMs = 1
/** Of checks, half a second of work. */
const defaultMaxWaiting = 10_000
/** So that a flood leaves room for those who have to wait because of it. */
const shareOfAnAddress = 0.5
/** After so many turns in which only one address asked, there is nobody to wait for: to queue costs a tenth of the rate. */
const maxTurnsAlone = 10_000

type Waiting = { request: IncomingMessage; response: ServerResponse; next: RequestListener }

export type FairQueue = {
  /** Calls `next` for each request: most at once, those of a busy address in its turn. */
  before: (next: RequestListener) => RequestListener
  measure: () => { waiting: number; queued: number; shed: number }
}

/**
 * A flood from one address, of whatever it asks for, makes that address wait and not the others: fair queueing by the
 * address, after RFC 970. The event loop alone would do all that has arrived before it takes what comes next.
 */
export function createFairQueue(options: {
  findAddress: (request: IncomingMessage) => string
  maxWaiting?: number
}): FairQueue {
  const { findAddress, maxWaiting = defaultMaxWaiting } = options
  /** In the order of their turn. */
  const queues = new Map<string, Waiting[]>()
  /** In this turn of the event loop. */
  const taken = new Map<string, number>()
  let isTurnTimed = false
  let lastAddress: string | undefined
  let turnsAlone = maxTurnsAlone
  let waiting = 0
  let queued = 0
  let shed = 0

  const endTurn = () => {
    taken.clear()
    turnsAlone += 1
    const endMs = performance.now() + sliceMs
    while (waiting > 0 && performance.now() < endMs) serveNext()
    isTurnTimed = waiting > 0
    if (isTurnTimed) setImmediate(endTurn)
  }
  const serveNext = () => {
    for (const [address, queue] of queues) {
      const first = queue.shift()
      queues.delete(address)
      if (queue.length > 0) queues.set(address, queue)
      waiting -= 1
      // Nobody is there any more to be answered.
      if (first !== undefined && !first.request.socket.destroyed) first.next(first.request, first.response)
      return
    }
  }
  const enqueue = (address: string, entry: Waiting) => {
    const queue = queues.get(address)
    if (queue === undefined) queues.set(address, [entry])
    else queue.push(entry)
    waiting += 1
    queued += 1
  }
  return {
    before: (next) => (request, response) => {
      const address = findAddress(request)
      lastAddress ??= address
      if (address !== lastAddress) {
        lastAddress = address
        turnsAlone = 0
      } else if (turnsAlone >= maxTurnsAlone && waiting === 0) return next(request, response)
      const count = taken.get(address) ?? 0
      taken.set(address, count + 1)
      if (!isTurnTimed) {
        isTurnTimed = true
        setImmediate(endTurn)
      }
      const ownWaiting = queues.get(address)?.length ?? 0
      const hasRoom = waiting < maxWaiting && ownWaiting < maxWaiting * shareOfAnAddress
      if (count < maxAtOnce && ownWaiting === 0) next(request, response)
      else if (hasRoom) enqueue(address, { request, response, next })
      else {
        shed += 1
        refuse(request, response)
      }
    },
    measure: () => ({ waiting, queued, shed }),
  }
}

function refuse(request: IncomingMessage, response: ServerResponse): void {
  response.shouldKeepAlive = false
  sendRefusal(response, chooseRequestId(request), new AppError('unavailable', undefined, { retryAfterSeconds: 1 }))
}
