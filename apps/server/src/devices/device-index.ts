import { setTimeout as sleep } from 'node:timers/promises'
import type { PatchCheckRequest } from '@godwit/contract'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Db } from '../db/connection.ts'
import { AppError } from '../errors.ts'
import type { UrlSigner } from '../transfers/signed-urls.ts'
import { type AppAnswers, buildAppAnswers, findAnswer } from './app-answers.ts'
import { createAppChangeListener } from './app-change-listener.ts'
import { createAppVersions } from './app-versions.ts'
import { findDeviceApp } from './queries.ts'

/** How long a lost notification can go unnoticed. */
const refreshMs = 5000
/** A check waits this long for an app's newer state, and is then answered from the last known one. */
const reloadPatienceMs = 1000
/** The same where nothing is known yet. */
const firstLoadPatienceMs = 5000
/** After a load failed, the app's checks do without another attempt for this long. */
const retryLoadMs = 1000
const maxSizeBytes = 256 * 1024 ** 2
/**
 * A check may join a load that began before the change which it must see, and then needs the next one. More than these
 * would mean that the load fails, or that the database is behind what we were told.
 */
const maxLoadsPerCheck = 3

/** What the device door answers from. Built per app from SQL on its first check, kept in memory. */
export type DeviceIndex = {
  /** Told after a commit that changed what devices of the app are offered: the next check here sees it. Version 0: gone. */
  markChanged: (appId: string, version: number) => void
  hasApp: (appId: string) => boolean
  /** A PatchCheckResponse as JSON in ASCII. A promise only while the app must be loaded. */
  answer: (check: PatchCheckRequest) => string | Promise<string>
  start: () => Promise<void>
  stop: () => Promise<void>
  measure: () => { apps: number; loadedApps: number; sizeBytes: number; loads: number }
}

type Load = { answers: Promise<AppAnswers | undefined>; hasFailed: boolean }

export function createDeviceIndex(options: {
  db: Db
  urls: UrlSigner
  log: Logger
  connectionString: string
}): DeviceIndex {
  const { db, urls, log, connectionString } = options
  const versions = createAppVersions(db)
  const loaded = new LRUCache<string, AppAnswers>({
    maxSize: maxSizeBytes,
    sizeCalculation: (answers) => answers.sizeBytes,
  })
  const loads = new Map<string, Load>()
  const stopping = new AbortController()
  let loadCount = 0

  const markChanged = (appId: string, version: number) => {
    versions.mark(appId, version)
    if (version === 0) loaded.delete(appId)
    if (loads.get(appId)?.hasFailed) loads.delete(appId)
  }

  const loadNewest = async (appId: string): Promise<AppAnswers | undefined> => {
    loadCount += 1
    const app = await findDeviceApp(db, { appId })
    if (app === undefined) markChanged(appId, 0)
    if (app === undefined || versions.get(appId) === undefined) return undefined
    const answers = buildAppAnswers(app, (blobKey) => urls.sign('download', blobKey))
    loaded.set(appId, answers)
    return answers
  }

  const startLoad = (appId: string, last: AppAnswers | undefined): Load => {
    const newest = loadNewest(appId)
    const patienceMs = last === undefined ? firstLoadPatienceMs : reloadPatienceMs
    const answers = within(newest, patienceMs).catch(() => {
      if (last === undefined) throw new AppError('unavailable', undefined, { retryAfterSeconds: 5 })
      return last
    })
    const load: Load = { answers, hasFailed: false }
    const forget = () => {
      if (loads.get(appId) === load) loads.delete(appId)
    }
    loads.set(appId, load)
    newest.then(forget, (error: unknown) => {
      log.warn({ err: error, appId }, 'cannot load what devices of the app are offered')
      load.hasFailed = true
      setTimeout(forget, retryLoadMs).unref()
    })
    return load
  }

  /** At least as new as `version`, what was known when the check came; failing that, the last that is known. */
  const answerAfterLoad = async (check: PatchCheckRequest, version: number): Promise<string> => {
    for (let attempt = 1; ; attempt += 1) {
      const last = loaded.get(check.app_id)
      const load = loads.get(check.app_id) ?? startLoad(check.app_id, last)
      const answers = await load.answers
      const isOlder = answers !== undefined && answers.version < version
      if (!isOlder || attempt === maxLoadsPerCheck) return findAnswer(answers, check)
    }
  }

  const refresh = () =>
    versions.refresh().catch((error: unknown) => {
      if (!stopping.signal.aborted) log.warn({ err: error }, 'cannot read which apps have changed')
    })
  const listener = createAppChangeListener({ connectionString, log, onChange: markChanged, onConnected: refresh })
  const keepRefreshing = async () => {
    while (!stopping.signal.aborted) {
      await sleep(refreshMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      if (!stopping.signal.aborted) await refresh()
    }
  }
  return {
    markChanged,
    hasApp: (appId) => versions.get(appId) !== undefined,
    answer: (check) => {
      const version = versions.get(check.app_id)
      if (version === undefined) return findAnswer(undefined, check)
      const last = loaded.get(check.app_id)
      if (last !== undefined && last.version >= version) return findAnswer(last, check)
      return answerAfterLoad(check, version)
    },
    start: async () => {
      // Listening before reading: a change in between is seen twice instead of never.
      await listener.start()
      await versions.refresh()
      void keepRefreshing()
    },
    stop: async () => {
      stopping.abort()
      await listener.stop()
    },
    measure: () => ({
      apps: versions.count(),
      loadedApps: loaded.size,
      sizeBytes: loaded.calculatedSize,
      loads: loadCount,
    }),
  }
}

/** Rejects when the promise takes longer. What it stands for goes on. */
async function within<T>(promise: Promise<T>, limitMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`took longer than ${limitMs} ms`)), limitMs)
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer))
}
