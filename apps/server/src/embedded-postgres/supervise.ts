import { setTimeout as delay } from 'node:timers/promises'
import { bringUp, type Context, type Postmaster } from './postmaster.ts'
import { trimLog } from './server-log.ts'
import { stopPostmaster } from './stop.ts'

const ADOPTED_POLL_MS = 200
const TRIM_LOG_EVERY_MS = 60_000
const PAUSE_BETWEEN_ROUNDS_MS = 5_000
/** A postmaster that lived this long did not fail at starting. */
const SETTLED_MS = 60_000

/** Keeps a postmaster on this port, whatever happens to it. The returned function ends that, and the postmaster. */
export function supervise(context: Context, first: Postmaster): () => Promise<void> {
  const { layout, binaries, log } = context
  const abort = new AbortController()
  let current = first
  let restarting: Promise<void> | undefined
  let quickEnds = 0

  const watch = (postmaster: Postmaster) => {
    current = postmaster
    const since = Date.now()
    watchUntilGone(postmaster, abort.signal, () => {
      quickEnds = Date.now() - since > SETTLED_MS ? 0 : quickEnds + 1
      log.error(
        { pid: postmaster.pid, ending: postmaster.child?.ending() },
        'PostgreSQL ended by itself; restarting it',
      )
      restarting = restart()
    })
  }

  const restart = async () => {
    // One that ends soon after every start is not restarted in a tight loop.
    let pauseMs = quickEnds > 1 ? Math.min(100 * 2 ** quickEnds, PAUSE_BETWEEN_ROUNDS_MS) : 0
    while (!abort.signal.aborted) {
      try {
        await delay(pauseMs, undefined, { signal: abort.signal })
        const postmaster = await bringUp(context, abort.signal, first.port)
        log.info({ pid: postmaster.pid, port: postmaster.port }, 'PostgreSQL is back')
        watch(postmaster)
        return
      } catch (error) {
        if (abort.signal.aborted) return
        // Giving up would leave a service that does not recover when, say, a full disk has room again.
        pauseMs = PAUSE_BETWEEN_ROUNDS_MS
        log.error({ err: error, port: first.port }, 'could not restart PostgreSQL; trying again')
      }
    }
  }

  watch(first)
  const trimTimer = setInterval(() => {
    try {
      trimLog(layout.logFile)
    } catch (error) {
      log.warn({ err: error }, "could not shorten PostgreSQL's log")
    }
  }, TRIM_LOG_EVERY_MS).unref()

  return async () => {
    abort.abort()
    clearInterval(trimTimer)
    await restarting
    await stopPostmaster(current, layout.clusterDir, binaries.pg_ctl)
    log.info({ folder: layout.clusterDir }, 'stopped PostgreSQL')
  }
}

function watchUntilGone(postmaster: Postmaster, signal: AbortSignal, handleGone: () => void): void {
  const { child } = postmaster
  if (child) {
    const handleEnd = () => signal.aborted || handleGone()
    // It may have ended since it was found ready, and then there is no event to come.
    if (child.isGone()) handleEnd()
    else child.onEnd(handleEnd)
    return
  }
  const timer = setInterval(() => {
    if (!signal.aborted && !postmaster.isGone()) return
    clearInterval(timer)
    if (!signal.aborted) handleGone()
  }, ADOPTED_POLL_MS)
  timer.unref()
}
