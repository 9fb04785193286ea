import type { PatchCheckRequest } from '@godwit/contract'
import type { Logger } from 'pino'
import type { Db } from '../db/connection.ts'
import type { UrlSigner } from '../transfers/signed-urls.ts'
import { createWakeablePause } from '../wakeable-pause.ts'
import { createAnswersCache } from './answers-cache.ts'
import { type Answer, type AppAnswers, buildAppAnswers, findAnswer } from './app-answers.ts'
import { createAppChangeListener } from './app-change-listener.ts'
import { createAppVersions } from './app-versions.ts'
import { createDeviceAppReader, type DeviceAppReader } from './device-app-reader.ts'

/** The list of versions is read this often, in case that a notification was lost, */
const refreshMs = 5000
/** and this often while nobody would tell us: a change is live within a second. */
const refreshUntoldMs = 500

/** What the device door answers from. Built per app from SQL on its first check, kept in memory. */
export type DeviceIndex = {
  /** Told after a commit that changed what devices of the app are offered: the next check here sees it. Version 0: gone. */
  markChanged: (appId: string, version: number) => void
  hasApp: (appId: string) => boolean
  /** A promise only while the app must be loaded. */
  answer: (check: PatchCheckRequest) => Answer | Promise<Answer>
  /** undefined: there is no such app. A promise only while the app must be loaded. */
  findApp: (appId: string) => AppAnswers | undefined | Promise<AppAnswers | undefined>
  start: () => Promise<void>
  stop: () => Promise<void>
  /** `ageMs`: since it was known to agree with the database. */
  measure: () => {
    apps: number
    ageMs: number
    loadedApps: number
    sizeBytes: number
    loads: number
    replicaReads: ReturnType<DeviceAppReader['measure']>
  }
}

export function createDeviceIndex(options: {
  db: Db
  /** May be behind: what is too old there is read of `db`. */
  replica?: Db | undefined
  urls: UrlSigner
  log: Logger
  connectionString: string
  /** What other instances tell on the same connection of the limits. */
  onCounts?: (payload: string) => void
}): DeviceIndex {
  const { db, replica, urls, log, connectionString } = options
  const versions = createAppVersions(db)
  const reader = createDeviceAppReader({ db, replica })
  const stopping = new AbortController()

  const load = async (appId: string) => {
    const app = await reader.read(appId, versions.get(appId) ?? 0)
    if (app === undefined) markChanged(appId, 0)
    // It may have been deleted while it was read.
    if (app === undefined || versions.get(appId) === undefined) return undefined
    return buildAppAnswers(app, (blobKey) => urls.sign('download', blobKey))
  }
  const cache = createAnswersCache({ load, log })
  const markChanged = (appId: string, version: number) => {
    versions.mark(appId, version)
    cache.markChanged(appId, version === 0)
  }
  let isTold = false
  let isDue = false
  let isRefreshing = true
  const pause = createWakeablePause()
  const refresh = async () => {
    try {
      await versions.refresh()
      isRefreshing = true
    } catch (error) {
      if (isRefreshing && !stopping.signal.aborted) log.warn({ err: error }, 'cannot read which apps have changed')
      isRefreshing = false
    }
  }
  const setTold = (told: boolean) => {
    isTold = told
    isDue = true
    pause.end()
  }
  const listener = createAppChangeListener({
    connectionString,
    log,
    onChange: markChanged,
    onCounts: options.onCounts ?? (() => undefined),
    onListening: () => setTold(true),
    onDoubt: () => setTold(false),
  })
  const keepRefreshing = async () => {
    while (!stopping.signal.aborted) {
      if (!isDue) await pause.wait(isTold ? refreshMs : refreshUntoldMs)
      isDue = false
      if (!stopping.signal.aborted) await refresh()
    }
  }
  const findApp: DeviceIndex['findApp'] = (appId) => {
    const version = versions.get(appId)
    return version === undefined ? undefined : cache.find(appId, version)
  }
  return {
    markChanged,
    hasApp: (appId) => versions.get(appId) !== undefined,
    findApp,
    answer: (check) => {
      const app = findApp(check.app_id)
      return app instanceof Promise ? app.then((loaded) => findAnswer(loaded, check)) : findAnswer(app, check)
    },
    start: async () => {
      // Listening before reading: a change in between is seen twice instead of never.
      await listener.start()
      await versions.refresh()
      void keepRefreshing()
    },
    stop: async () => {
      stopping.abort()
      pause.end()
      await listener.stop()
    },
    measure: () => ({
      apps: versions.count(),
      ageMs: versions.ageMs(),
      ...cache.measure(),
      replicaReads: reader.measure(),
    }),
  }
}
