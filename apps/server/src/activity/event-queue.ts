import type { PatchEvent } from '@godwit/contract'
import type { ReceivedEvent } from '../devices/queries.ts'
import { unavailable } from './frame-queue.ts'

/** Events that arrive within this time of the first one share a frame. */
const gatherMs = 2
const maxGroup = 1000
/** Events that may wait to be durable: 5 MB as devices send them, 100 MB at the longest allowed. */
const maxWaiting = 10_000
/** Neither the database nor the disk answers for longer: whoever waits is told so. */
const patienceMs = 2000

/** Gathers what devices report, many devices to a frame. */
export type EventQueue = {
  /** Resolves when the event is stored durably. */
  store: (event: PatchEvent) => Promise<void>
  /** Writes what is gathered. */
  send: () => void
  /** Writes what is gathered, and takes nothing more. */
  stop: () => void
}

type Waiting = ReceivedEvent & { resolve: () => void; reject: (error: unknown) => void }

export function createEventQueue(options: {
  /** Resolves when all of them are durable. */
  write: (events: ReceivedEvent[]) => Promise<void>
  clock: () => Date
}): EventQueue {
  const { write, clock } = options
  let gathered: Waiting[] = []
  let timer: NodeJS.Timeout | undefined
  let waiting = 0
  let isStopped = false

  const writeGroup = async (group: Waiting[]) => {
    const refuse = (error: unknown) => {
      for (const { reject } of group) reject(error)
    }
    const giveUp = setTimeout(() => refuse(unavailable()), patienceMs)
    try {
      await write(group.map(({ event, receivedMs }) => ({ event, receivedMs })))
      for (const { resolve } of group) resolve()
    } catch (error) {
      refuse(error)
    } finally {
      clearTimeout(giveUp)
      waiting -= group.length
    }
  }
  const send = () => {
    clearTimeout(timer)
    timer = undefined
    const group = gathered
    gathered = []
    if (group.length > 0) void writeGroup(group)
  }
  return {
    store: (event) =>
      new Promise((resolve, reject) => {
        if (isStopped || waiting >= maxWaiting) return reject(unavailable())
        waiting += 1
        gathered.push({ event, receivedMs: clock().getTime(), resolve, reject })
        if (gathered.length === maxGroup) send()
        else timer ??= setTimeout(send, gatherMs)
      }),
    send,
    stop: () => {
      isStopped = true
      send()
    },
  }
}
