import type { PatchCheckRequest, ReleasePlatform } from '@godwit/contract'
import type { SegmentBytes } from './frames.ts'
import { createSegmentBuilder, maxContexts, type SegmentBuilder } from './segment.ts'

/** The running patch of a check that does not tell it. */
const untold = -1
/** As many records and contexts as may be gathered before they are taken: 5 MB and about 4 MB. */
const maxRecords = 200_000
const maxContextBytes = 4 * 1024 ** 2
/** What a context takes beside its release's name. */
const contextBytes = 150

/** The checks that were answered since the last `take`, by app. */
export type ObservationBuffers = {
  add: (check: PatchCheckRequest, clientId: string, rolledBack: readonly number[], timeMs: number) => void
  /** When they should be taken early. */
  isFull: () => boolean
  isEmpty: () => boolean
  take: () => SegmentBytes[]
  sizeBytes: () => number
}

type Known = { platform: ReleasePlatform; rolledBack: readonly number[]; context: number }
type AppBuffer = { builder: SegmentBuilder; releases: Map<string, Map<number, Known[]>> }
type Last = Known & { app: AppBuffer; appId: string; release: string; running: number }

export function createObservationBuffers(): ObservationBuffers {
  let apps = new Map<string, AppBuffer>()
  let finished: SegmentBytes[] = []
  let records = 0
  let contextsSizeBytes = 0
  /** Most checks differ from the one before them in their device only, and need no search. */
  let last: Last | undefined

  const openApp = (appId: string): AppBuffer => {
    const app = { builder: createSegmentBuilder(), releases: new Map() }
    apps.set(appId, app)
    return app
  }
  const finish = (appId: string, { builder }: AppBuffer) =>
    finished.push({ appId, bytes: builder.encode(), count: builder.count() })

  const addContext = (
    app: AppBuffer,
    check: PatchCheckRequest,
    running: number,
    rolledBack: readonly number[],
  ): number => {
    const { release_version: release, platform } = check
    const context = app.builder.addContext({
      release: release === '' ? null : release,
      platform,
      ...(running === untold ? {} : { running }),
      rolledBack,
    })
    contextsSizeBytes += contextBytes + release.length * 2 + rolledBack.length * 8
    let patches = app.releases.get(release)
    if (patches === undefined) {
      patches = new Map()
      app.releases.set(release, patches)
    }
    const known = { platform, rolledBack, context }
    const others = patches.get(running)
    if (others === undefined) patches.set(running, [known])
    else others.push(known)
    return context
  }

  const findOrAddContext = (check: PatchCheckRequest, running: number, rolledBack: readonly number[]): Last => {
    const { app_id: appId, release_version: release, platform } = check
    let app = apps.get(appId) ?? openApp(appId)
    let context = findContext(app, check, running, rolledBack)
    if (context === undefined) {
      if (app.builder.contextCount() === maxContexts) {
        finish(appId, app)
        app = openApp(appId)
      }
      context = addContext(app, check, running, rolledBack)
    }
    return { app, appId, release, platform, running, rolledBack, context }
  }

  return {
    add: (check, clientId, rolledBack, timeMs) => {
      const running = runningPatchOf(check)
      if (last === undefined || !isAlike(last, check, running, rolledBack)) {
        last = findOrAddContext(check, running, rolledBack)
      }
      last.app.builder.add(last.context, timeMs, clientId)
      records += 1
    },
    isFull: () => records >= maxRecords || contextsSizeBytes >= maxContextBytes,
    isEmpty: () => records === 0,
    take: () => {
      for (const [appId, app] of apps) finish(appId, app)
      const taken = finished
      apps = new Map()
      finished = []
      last = undefined
      records = 0
      contextsSizeBytes = 0
      return taken
    },
    sizeBytes: () => records * 24 + contextsSizeBytes,
  }
}

function runningPatchOf({ current_patch_number, patch_number }: PatchCheckRequest): number {
  // The key alone says that the updater knows: null is the base release, as 0 is.
  if (current_patch_number !== undefined) return current_patch_number ?? 0
  return patch_number ?? untold
}

function isAlike(last: Last, check: PatchCheckRequest, running: number, rolledBack: readonly number[]): boolean {
  return (
    last.rolledBack === rolledBack &&
    last.running === running &&
    last.platform === check.platform &&
    last.release === check.release_version &&
    last.appId === check.app_id
  )
}

/** Lists are compared by identity: the index of what devices are offered has one per state of a release. */
function findContext(
  app: AppBuffer,
  check: PatchCheckRequest,
  running: number,
  rolledBack: readonly number[],
): number | undefined {
  const known = app.releases.get(check.release_version)?.get(running)
  if (known === undefined) return undefined
  for (const { platform, rolledBack: list, context } of known) {
    if (list === rolledBack && platform === check.platform) return context
  }
  return undefined
}
