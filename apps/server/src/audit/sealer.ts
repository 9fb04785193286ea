import type { Deps } from '../deps.ts'
import { hasOutboxEvents } from './queries.ts'
import { sealEvents } from './seal-events.ts'

/** Reading seals too: this only keeps the outbox short while nobody reads. */
const pauseMs = 500

/** Seals what is committed, for as long as the service runs. A failure is tried again after the next pause. */
export function startSealing(deps: Pick<Deps, 'db' | 'clock' | 'log'>): { stop: () => Promise<void> } {
  let isStopping = false
  let wake = () => {}
  const run = async () => {
    let isFailing = false
    while (!isStopping) {
      try {
        if (await hasOutboxEvents(deps.db)) await sealEvents(deps.db, { now: deps.clock() })
        isFailing = false
      } catch (error) {
        if (!isFailing) deps.log.warn({ err: error }, 'audit events wait to be sealed')
        isFailing = true
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pauseMs)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
  const running = run()
  return {
    async stop() {
      isStopping = true
      wake()
      await running
    },
  }
}
