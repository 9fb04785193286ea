import { setTimeout as sleep } from 'node:timers/promises'
import { compactApp } from './compact-app.ts'
import { finishUnits, tidyApp } from './maintain-app.ts'
import { listAppsWithSegments } from './queries.ts'
import type { StoreContext } from './store-context.ts'
import type { WorkerMeasures } from './worker-protocol.ts'

/** Whoever asks compacts too: this only keeps the log short while nobody asks. */
const pauseMs = 1000
/** Hours that are over are finished this often. */
const finishMs = 60_000
/** Compactions of one app before the next has its turn. */
const roundsPerTurn = 4

export type Compacting = {
  /** Reports what is known now, and not only with the next round. */
  tell: () => void
  stop: () => Promise<void>
}

/** Compacts what is committed, for as long as the service runs. A failure is tried again after the next pause. */
export function startCompacting(context: StoreContext, report: (measures: WorkerMeasures) => void): Compacting {
  const stopping = new AbortController()
  const { signal } = stopping
  /** All observations from before are compacted, as far as was seen last (Unix ms). */
  let countedUntilMs = Date.now()
  const failing = new Set<string | undefined>()

  const compactAll = async () => {
    const askedAtMs = Date.now()
    const apps = await listAppsWithSegments(context.db)
    countedUntilMs = Math.min(askedAtMs, ...apps.map(({ oldest }) => oldest.getTime()))
    for (const { app_id: appId } of apps) await attempt(() => compactInTurn(appId), appId)
  }
  const compactInTurn = async (appId: string) => {
    for (let round = 0; round < roundsPerTurn && !signal.aborted; round += 1) {
      const compact = () => compactApp(context, { appId, skipLocked: true })
      const { observations } = await context.exclusively(appId, compact)
      if (observations === 0) break
    }
    if (!signal.aborted) await tidyApp(context, appId)
  }
  const finishAll = async () => {
    for (const appId of context.states.appIds()) {
      if (!signal.aborted) await attempt(() => finishUnits(context, appId), appId)
    }
  }
  /** What fails for one app is no matter of the others. Told once, until it works again. */
  const attempt = async (work: () => Promise<void>, appId?: string) => {
    try {
      await work()
      failing.delete(appId)
    } catch (error) {
      if (failing.has(appId) || signal.aborted) return
      context.log.warn({ err: error, appId }, 'what devices sent waits to be counted')
      failing.add(appId)
    }
  }
  const tell = () => {
    const { units, states, compactions, compactedObservations, dropped, replicaReads } = context
    const held = { unitBytes: units.sizeBytes(), stateBytes: states.sizeBytes() }
    report({ compactions, compactedObservations, dropped, countedUntilMs, replicaReads, ...held })
  }
  const run = async () => {
    let finishAt = performance.now() + finishMs
    while (!signal.aborted) {
      await attempt(compactAll)
      if (performance.now() > finishAt) {
        await attempt(finishAll)
        finishAt = performance.now() + finishMs
      }
      tell()
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }
  const running = run()
  return {
    tell,
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}
